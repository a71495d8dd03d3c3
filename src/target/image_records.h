// The records between a target host and its daemon, which keeps images for all programs
// (proxy/image_keeper.h). They travel on a SOCK_SEQPACKET socket that also carries the images' memory files.
// Both sides are of one build and on one machine. The host trusts its daemon. The daemon trusts nothing,
// because the host runs the program's code. Threads: any.
#pragma once

#include "memory/file.h"
#include "target/image_name.h"

#include <cstdint>
#include <span>

namespace offpath::target {

enum class ImageRequestKind : std::uint32_t { find = 1, keep = 2, none = 3 };

// find: answered by an ImageReply, perhaps after another host has offered the image. keep: not answered;
// comes with the image's file, whose size is sealed. none: the sender, which has asked for the image, will
// not offer it.
struct ImageRequest {
    ImageRequestKind kind = ImageRequestKind::find;
    std::uint32_t number = 0;
    std::uint64_t bytes = 0;  // of the image
    ImageName name{};
    ImageProof proof{};  // of find
};

// Comes with the image's sealed file, or without a file: the daemon does not have the image, or the proof is
// wrong.
struct ImageReply {
    std::uint32_t number = 0, unused = 0;
};

// False: the record was not sent. `file`: a descriptor to send along; -1: none.
bool send_image_record(int socket, std::span<const std::byte> record, int file);
enum class Received : std::uint8_t { record, nothing, wrong, end };
// Does not wait. wrong: a record of another size. `file` is what came along.
Received receive_image_record(int socket, std::span<std::byte> record, memory::File& file);

}  // namespace offpath::target
