#include "target/host/daemon_images.h"

#include "base/clock.h"

#include <poll.h>
#include <sys/stat.h>

#include <algorithm>

namespace offpath::target {
namespace {

// Another program may be sending the same image. If that takes longer, this program sends its own.
constexpr std::uint64_t image_patience_ns = 3'000'000'000;
constexpr std::uint64_t image_patience_ns_a_byte = 20;

bool has_bytes(const memory::File& file, std::uint64_t bytes) {
    struct stat facts {};
    return file && fstat(file.get(), &facts) == 0 && static_cast<std::uint64_t>(facts.st_size) == bytes;
}

}  // namespace

memory::File DaemonImages::find(const FindImage& wanted) {
    if (!socket_) return {};
    const ImageRequest request{ImageRequestKind::find, ++last_, wanted.bytes, wanted.name, wanted.proof};
    if (!send_image_record(socket_.get(), bytes_of(request), -1)) return {};
    const std::uint64_t end =
        now_ns() + image_patience_ns + std::min(wanted.bytes, max_image_bytes) * image_patience_ns_a_byte;
    for (std::uint64_t now = now_ns(); now < end; now = now_ns()) {
        pollfd arrival{socket_.get(), POLLIN, 0};
        (void)poll(&arrival, 1, static_cast<int>((end - now) / 1'000'000) + 1);
        ImageReply reply;
        memory::File file;
        const auto received =
            receive_image_record(socket_.get(), std::as_writable_bytes(std::span(&reply, 1)), file);
        if (received == Received::end || received == Received::wrong) return {};
        // An earlier request may be answered late.
        if (received == Received::record && reply.number == last_)
            return has_bytes(file, wanted.bytes) ? std::move(file) : memory::File();
    }
    return {};
}

void DaemonImages::keep(const ImageName& name, const memory::File& file, std::uint64_t bytes) {
    if (!socket_) return;
    const ImageRequest request{ImageRequestKind::keep, ++last_, bytes, name, {}};
    (void)send_image_record(socket_.get(), bytes_of(request), file.get());
}

void DaemonImages::will_not_keep(const ImageName& name) {
    if (!socket_) return;
    const ImageRequest request{ImageRequestKind::none, ++last_, 0, name, {}};
    (void)send_image_record(socket_.get(), bytes_of(request), -1);
}

}  // namespace offpath::target
