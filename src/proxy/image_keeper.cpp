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
#include <vector>

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
        } else if (received == target::Received::record && request.kind == target::ImageRequestKind::none) {
            withdraw(*host, request.name);
        } else {
            if (received != target::Received::end)
                complain(host->client, "a target host sent what is no request for images");
            drop(host);
            return true;
        }
    }
    return true;
}

void ImageKeeper::drop(std::list<Host>::iterator host) {
    epoll_ctl(epoll_, EPOLL_CTL_DEL, host->socket.get(), nullptr);
    waiting_.remove_if([&](const Waiting& each) { return each.host == &*host; });
    std::vector<target::ImageName> names;
    for (const auto& [name, by] : expected_)
        if (by == &*host) names.push_back(name);
    for (const target::ImageName& name : names)
        settle(name);
    hosts_.erase(host);
}

// Whether another host is expected to offer the image. If none is, from now on this one is.
bool ImageKeeper::must_wait(Host& host, const target::ImageRequest& request) {
    if (cache_.has(request.name) || request.bytes == 0 || request.bytes > cache_.limit_bytes()) return false;
    const auto expected = expected_.find(request.name);
    if (expected == expected_.end()) {
        if (expected_.size() < max_expected) expected_[request.name] = &host;
        return false;
    }
    if (expected->second == &host || waiting_.size() >= max_waiting) return false;
    waiting_.push_back({&host, request});
    return true;
}

// The image has come, or who was expected to offer it will not. The first host that waits is then told that
// it is not there, and is expected to offer it.
void ImageKeeper::settle(const target::ImageName& name) {
    expected_.erase(name);
    std::list<Waiting> these;
    for (auto each = waiting_.begin(); each != waiting_.end();) {
        const auto waiting = each++;
        if (waiting->request.name == name) these.splice(these.end(), waiting_, waiting);
    }
    for (const Waiting& waiting : these)
        answer(*waiting.host, waiting.request);
}

void ImageKeeper::withdraw(const Host& host, const target::ImageName& name) {
    const auto expected = expected_.find(name);
    if (expected != expected_.end() && expected->second == &host) settle(name);
}

void ImageKeeper::answer(Host& host, const target::ImageRequest& request) {
    const memory::File* const file = cache_.find(request.name, request.bytes, request.proof, host.nonce);
    if (file == nullptr && must_wait(host, request)) return;
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
    const bool fine = file && request.bytes > 0 && offers_.size() < max_offers;
    if (!fine || !is_memory_file(file, request.bytes)) {
        if (fine) complain(host.client, "an image is not kept: it is no memory file of that size");
        return withdraw(host, request.name);
    }
    Offer& offer = offers_.emplace_back();
    offer.name = request.name;
    offer.bytes = request.bytes;
    offer.source = std::move(file);
    offer.client = host.client;
    const auto expected = expected_.find(request.name);
    offer.expected = expected != expected_.end() && expected->second == &host;
    if (offer.expected) expected->second = nullptr;
}

void ImageKeeper::complain(const std::string& client, const std::string& problem) {
    if (complaints_.may_speak(now_ns()))
        log::warn(Code::target_region, "{}: {}{}", client, problem, complaints_.left_out());
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
    const target::ImageName name = offer.name;
    const bool settles = offer.expected || cache_.has(name);
    offers_.pop_front();
    if (settles) settle(name);
}

}  // namespace offpath::proxy
