// ImageCache: the images that a daemon keeps, each as a sealed memory file. It holds at most a given number
// of bytes and drops first what was used longest ago. Pure but for the descriptors. Ownership: owns the
// files. Threads: one at a time.
#pragma once

#include "memory/file.h"
#include "target/image_name.h"

#include <cstdint>
#include <list>
#include <map>

namespace offpath::proxy {

class ImageCache {
  public:
    static constexpr std::size_t max_images = 256;  // each has a descriptor

    explicit ImageCache(std::uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

    // Null: there is no such image of `bytes` bytes, or the proof is wrong.
    const memory::File* find(const target::ImageName& name, std::uint64_t bytes,
                             const target::ImageProof& proof, const target::ImageNonce& nonce);
    bool has(const target::ImageName& name) const { return entries_.contains(name); }
    // Drops images until there is room for one more. False: it is larger than the cache.
    bool make_room(std::uint64_t bytes);
    // After make_room() for these bytes. The image is not there yet.
    void keep(const target::ImageSecret& secret, memory::File file, std::uint64_t bytes);

    std::uint64_t bytes() const { return bytes_; }
    std::uint64_t limit_bytes() const { return limit_bytes_; }
    std::size_t images() const { return entries_.size(); }
    std::uint64_t dropped() const { return dropped_; }

  private:
    struct Entry {
        target::ImageSecret secret;
        memory::File file;
        std::uint64_t bytes = 0;
        std::list<target::ImageName>::iterator use;
    };
    const std::uint64_t limit_bytes_;
    std::uint64_t bytes_ = 0, dropped_ = 0;
    std::map<target::ImageName, Entry> entries_;
    std::list<target::ImageName> uses_;  // the latest first
};

}  // namespace offpath::proxy
