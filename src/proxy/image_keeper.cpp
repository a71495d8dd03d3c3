#include "proxy/image_keeper.h"

#include "base/clock.h"
#include "base/log.h"
#include "proxy/watch.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace offpath::proxy {
namespace {

constexpr std::size_t image_piece_bytes = 256 << 10;
constexpr int image_requests_at_once = 8;

// Reading a file of another kind could take for ever.
bool is_memory_file(const memory::File& file, std::uint64_t bytes) {
    const int seals = fcntl(file.get(), F_GET_SEALS);
    struct stat facts {};
    return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(file.get(), &facts) == 0 &&
           static_cast<std::uint64_t>(facts.st_size) == bytes;
}

}  // namespace

ImageKeeper::~ImageKeeper() {
    if (found_ > 0 || cache_.images() > 0)
        log::info("images: {} kept, {} bytes; {} dropped; {} times one was there for a program",
                  cache_.images(), cache_.bytes(), cache_.dropped(), found_);
}

FileDescriptor ImageKeeper::serve(std::string client, const target::ImageNonce& nonce) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return {};
    Host& host = hosts_.emplace_back();
    host.socket = FileDescriptor(ends[0]);
    host.nonce = nonce;
    host.client = std::move(client);
    watch(epoll_, ends[0]);
    return FileDescriptor(ends[1]);
}

bool ImageKeeper::handle(int fd) {
    const auto host =
        std::find_if(hosts_.begin(), hosts_.end(), [&](const Host& each) { return each.socket.get() == fd; });
    if (host == hosts_.end()) return false;
    for (int i = 0; i < image_requests_at_once; ++i) {
        target::ImageRequest request;
        memory::File file;
        const auto received =
            target::receive_image_record(fd, std::as_writable_bytes(std::span(&request, 1)), file);
        if (received == target::Received::nothing) return true;
        if (received == target::Received::record && request.kind == target::ImageRequestKind::find) {
            answer(*host, request);
        } else if (received == target::Received::record && request.kind == target::ImageRequestKind::keep) {
            take(*host, request, std::move(file));
        } else {
            if (received != target::Received::end)
                complain(host->client, "a target host sent what is no request for images");
            epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
            hosts_.erase(host);
            return true;
        }
    }
    return true;
}

void ImageKeeper::answer(Host& host, const target::ImageRequest& request) {
    const memory::File* const file = cache_.find(request.name, request.bytes, request.proof, host.nonce);
    const target::ImageReply reply{request.number, 0};
    // A host that does not read its answers gets none.
    if (target::send_image_record(host.socket.get(), std::as_bytes(std::span(&reply, 1)),
                                  file != nullptr ? file->get() : -1) &&
        file != nullptr) {
        ++found_;
        log::debug("{}: an image of {} bytes was here", host.client, request.bytes);
    }
}

void ImageKeeper::take(Host& host, const target::ImageRequest& request, memory::File file) {
    if (!file || request.bytes == 0 || offers_.size() >= max_offers) return;
    if (!is_memory_file(file, request.bytes))
        return complain(host.client, "an image is not kept: it is no memory file of that size");
    Offer& offer = offers_.emplace_back();
    offer.name = request.name;
    offer.bytes = request.bytes;
    offer.source = std::move(file);
    offer.client = host.client;
}

void ImageKeeper::complain(const std::string& client, const std::string& problem) {
    if (complaints_.may_speak(now_ns())) log::warn("{}: {}{}", client, problem, complaints_.left_out());
}

bool ImageKeeper::begin(Offer& offer, std::string& problem) {
    if (cache_.has(offer.name)) return false;
    if (!cache_.make_room(offer.bytes)) {
        log::debug("{}: an image of {} bytes is not kept: it is larger than --image-cache-mib", offer.client,
                   offer.bytes);
        return false;
    }
    offer.copy = memory::File(memfd_create("offpath-image", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!offer.copy) problem = fmt::format("an image is not kept: {}", std::strerror(errno));
    return static_cast<bool>(offer.copy);
}

bool ImageKeeper::copy_piece(Offer& offer, std::string& problem) {
    static std::array<std::byte, image_piece_bytes> buffer;
    const std::size_t wanted = std::min<std::uint64_t>(image_piece_bytes, offer.bytes - offer.done);
    const ssize_t got = pread(offer.source.get(), buffer.data(), wanted, static_cast<off_t>(offer.done));
    if (got <= 0) {
        problem = "an image is not kept: its file is shorter than was said";
        return false;
    }
    const auto piece = std::span(buffer).first(static_cast<std::size_t>(got));
    if (write(offer.copy.get(), piece.data(), piece.size()) != got) {
        problem = fmt::format("an image is not kept: {}", std::strerror(errno));
        return false;
    }
    offer.hash.add(piece);
    offer.done += piece.size();
    return true;
}

void ImageKeeper::finish(Offer& offer) {
    const target::ImageSecret secret = offer.hash.secret();
    if (target::name_of(secret) != offer.name)
        return complain(offer.client, "an image is not kept: its content is not the one that was said");
    constexpr int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    if (fcntl(offer.copy.get(), F_ADD_SEALS, seals) != 0)
        return complain(offer.client, fmt::format("an image is not kept: {}", std::strerror(errno)));
    cache_.keep(secret, std::move(offer.copy), offer.bytes);
    log::debug("{}: an image of {} bytes is kept; {} bytes in all", offer.client, offer.bytes,
               cache_.bytes());
}

void ImageKeeper::work() {
    if (offers_.empty()) return;
    Offer& offer = offers_.front();
    std::string problem;
    bool fine = offer.copy || begin(offer, problem);
    fine = fine && copy_piece(offer, problem);
    if (fine && offer.done < offer.bytes) return;
    if (fine) finish(offer);
    if (!problem.empty()) complain(offer.client, problem);
    offers_.pop_front();
}

}  // namespace offpath::proxy
