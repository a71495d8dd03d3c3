#include "proxy/image_cache.h"

#include <utility>

namespace offpath::proxy {

const memory::File* ImageCache::find(const target::ImageName& name, std::uint64_t bytes,
                                     const target::ImageProof& proof, const target::ImageNonce& nonce) {
    const auto found = entries_.find(name);
    if (found == entries_.end() || found->second.bytes != bytes ||
        !target::proves(proof, found->second.secret, nonce))
        return nullptr;
    uses_.splice(uses_.begin(), uses_, found->second.use);
    return &found->second.file;
}

bool ImageCache::make_room(std::uint64_t bytes) {
    if (bytes > limit_bytes_) return false;
    while (bytes_ > limit_bytes_ - bytes || entries_.size() >= max_images) {
        const auto oldest = entries_.find(uses_.back());
        bytes_ -= oldest->second.bytes;
        ++dropped_;
        entries_.erase(oldest);
        uses_.pop_back();
    }
    return true;
}

void ImageCache::keep(const target::ImageSecret& secret, memory::File file, std::uint64_t bytes) {
    const target::ImageName name = target::name_of(secret);
    uses_.push_front(name);
    entries_.emplace(name, Entry{secret, std::move(file), bytes, uses_.begin()});
    bytes_ += bytes;
}

}  // namespace offpath::proxy
