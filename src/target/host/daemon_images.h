// DaemonImages: the target host's end of the socket to its daemon, which keeps images for all programs.
// Ownership: owns the socket. Threads: one at a time.
#pragma once

#include "base/file_descriptor.h"
#include "target/image_records.h"
#include "target/records.h"

namespace offpath::target {

class DaemonImages {
  public:
    // Without a socket there are no images.
    explicit DaemonImages(FileDescriptor socket) : socket_(std::move(socket)) {}

    // Returns the image's sealed file; none: the daemon does not have it, or does not answer for a while. It
    // then expects keep() or will_not_keep(). Meanwhile other programs that have the image wait for it.
    memory::File find(const FindImage& wanted);
    // Offers the daemon an image, whose file is sealed.
    void keep(const ImageName& name, const memory::File& file, std::uint64_t bytes);
    void will_not_keep(const ImageName& name);

  private:
    FileDescriptor socket_;
    std::uint32_t last_ = 0;  // number of a request
};

}  // namespace offpath::target
