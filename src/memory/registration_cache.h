// RegistrationCache: handles of registered memory (imports, mappings, memory keys), so that a buffer that is
// used again is not registered again. The key is address, length and generation. A look-up hits when one
// entry covers the whole range. A generation numbers the registrations of an address: memory that was
// unmapped and mapped again has a new generation, and handles of the old one are never returned.
//
// Ownership: the cache owns the handles. A handle is destroyed, outside the cache's lock, when its entry has
// been dropped (evicted, invalidated, superseded) and its last pin is gone. Pins must not outlive the cache.
// Threads: any with std::mutex, one with NullMutex.
//
// Invariant: the bytes of all entries, including pinned ones and those dropped while pinned, never exceed the
// cap. The least recently used entry without a pin is evicted first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace offpath::memory {

struct NullMutex {
    void lock() {}
    void unlock() {}
};

struct RegistrationCacheStats {
    std::uint64_t hits = 0, misses = 0, evictions = 0, invalidations = 0, refusals = 0;
    std::uint64_t bytes = 0;         // of all entries that hold a handle
    std::uint64_t pinned_bytes = 0;  // of those in use
    std::size_t entries = 0;         // that a look-up can find
};

template <typename Handle, typename Mutex = std::mutex>
class RegistrationCache {
    struct Entry {
        std::uint64_t address, bytes, generation;
        Handle handle;
        std::uint64_t serial = 0;
        std::uint32_t pins = 0;
        bool dropped = false;
        typename std::list<std::shared_ptr<Entry>>::iterator idle{};  // valid while pins == 0 and not dropped
    };
    using Entries = std::vector<std::shared_ptr<Entry>>;

  public:
    static constexpr std::uint64_t any_generation = 0;

    // Keeps an entry's handle alive. Empty: nothing was found, or there was no room.
    class Pin {
      public:
        Pin() = default;
        // A handle outside any cache; it is destroyed with the pin.
        static Pin uncached(std::uint64_t address, std::uint64_t bytes, std::uint64_t generation,
                            Handle&& handle) {
            Pin pin;
            pin.entry_ = std::make_shared<Entry>(Entry{address, bytes, generation, std::move(handle)});
            return pin;
        }
        Pin(Pin&& other) noexcept
            : cache_(std::exchange(other.cache_, nullptr)), entry_(std::move(other.entry_)) {}
        Pin& operator=(Pin&& other) noexcept {
            std::swap(cache_, other.cache_);
            std::swap(entry_, other.entry_);
            return *this;
        }
        ~Pin() { reset(); }
        void reset() {
            if (cache_ != nullptr) cache_->unpin(*entry_);
            cache_ = nullptr;
            entry_.reset();
        }

        explicit operator bool() const { return entry_ != nullptr; }
        Handle& operator*() const { return entry_->handle; }
        Handle* operator->() const { return &entry_->handle; }
        std::uint64_t address() const { return entry_->address; }
        std::uint64_t bytes() const { return entry_->bytes; }
        std::uint64_t generation() const { return entry_->generation; }

      private:
        friend class RegistrationCache;
        Pin(RegistrationCache* cache, std::shared_ptr<Entry> entry)
            : cache_(cache), entry_(std::move(entry)) {}
        RegistrationCache* cache_ = nullptr;
        std::shared_ptr<Entry> entry_;
    };

    explicit RegistrationCache(std::uint64_t byte_cap) : byte_cap_(byte_cap) {}
    RegistrationCache(const RegistrationCache&) = delete;
    RegistrationCache& operator=(const RegistrationCache&) = delete;

    // Pins an entry that covers [address, address + bytes).
    Pin find(std::uint64_t address, std::uint64_t bytes, std::uint64_t generation = any_generation) {
        std::lock_guard lock(mutex_);
        if (is_range(address, bytes)) {
            for (auto at = entries_.lower_bound({address, std::numeric_limits<std::uint64_t>::max()});
                 at != entries_.begin();) {
                --at;
                const std::shared_ptr<Entry>& entry = at->second;
                if (address - entry->address >= longest_) break;
                if (entry->address + entry->bytes < address + bytes) continue;
                if (generation != any_generation && entry->generation != generation) continue;
                ++stats_.hits;
                return pin(entry);
            }
        }
        ++stats_.misses;
        return {};
    }

    // Adds a handle and pins it. It supersedes entries that lie inside the new range. With generation 0 the
    // cache numbers the entry itself. Returns an empty pin when the range is empty or wraps, or when pinned
    // entries leave no room under the cap; `handle` is then untouched.
    Pin insert(std::uint64_t address, std::uint64_t bytes, Handle&& handle,
               std::uint64_t generation = any_generation) {
        Entries doomed;  // destroyed after the lock is released
        std::lock_guard lock(mutex_);
        if (!is_range(address, bytes) || bytes > byte_cap_ || stats_.pinned_bytes > byte_cap_ - bytes) {
            ++stats_.refusals;
            return {};
        }
        drop_if(address, bytes, doomed, [&](const Entry& entry) {
            return entry.address >= address && entry.address + entry.bytes <= address + bytes;
        });
        while (stats_.bytes > byte_cap_ - bytes) {
            const std::shared_ptr<Entry> oldest = idle_.front();
            entries_.erase({oldest->address, oldest->serial});
            drop(oldest, doomed);
            ++stats_.evictions;
        }
        if (generation == any_generation) generation = next_generation();
        auto entry = std::make_shared<Entry>(Entry{address, bytes, generation, std::move(handle)});
        entry->serial = ++last_serial_;
        entry->idle = idle_.insert(idle_.end(), entry);
        entries_.emplace(std::pair{address, entry->serial}, entry);
        stats_.bytes += bytes;
        longest_ = std::max(longest_, bytes);
        return pin(entry);
    }

    // A number that no entry has had. It is for registrations whose handle must know its generation before
    // insert().
    std::uint64_t new_generation() {
        std::lock_guard lock(mutex_);
        return next_generation();
    }

    // Drops every entry that touches the range. Returns how many of them are still pinned; their handles live
    // until the pins are gone.
    std::size_t invalidate(std::uint64_t address, std::uint64_t bytes) {
        Entries doomed;
        std::lock_guard lock(mutex_);
        if (bytes == 0) return 0;
        const std::uint64_t last = address + std::min(bytes - 1, ~std::uint64_t{0} - address);
        return drop_if(address, last - address + 1, doomed, [&](const Entry& entry) {
            const bool touches = entry.address <= last && entry.address + entry.bytes > address;
            stats_.invalidations += touches;
            return touches;
        });
    }

    RegistrationCacheStats stats() const {
        std::lock_guard lock(mutex_);
        RegistrationCacheStats stats = stats_;
        stats.entries = entries_.size();
        return stats;
    }

  private:
    static bool is_range(std::uint64_t address, std::uint64_t bytes) {
        return bytes > 0 && address <= ~std::uint64_t{0} - bytes;
    }
    std::uint64_t next_generation() { return ++last_generation_; }

    Pin pin(const std::shared_ptr<Entry>& entry) {
        if (entry->pins++ == 0) {
            idle_.erase(entry->idle);
            stats_.pinned_bytes += entry->bytes;
        }
        return {this, entry};
    }

    void unpin(Entry& entry) {
        std::lock_guard lock(mutex_);
        if (--entry.pins > 0) return;
        stats_.pinned_bytes -= entry.bytes;
        if (entry.dropped)
            stats_.bytes -= entry.bytes;
        else
            entry.idle = idle_.insert(idle_.end(), entries_.find({entry.address, entry.serial})->second);
    }

    // The caller has removed the entry from entries_.
    void drop(std::shared_ptr<Entry> entry, Entries& doomed) {
        entry->dropped = true;
        if (entry->pins == 0) {
            idle_.erase(entry->idle);
            stats_.bytes -= entry->bytes;
        }
        doomed.push_back(std::move(entry));
    }

    // Drops the matching entries among those that could touch the range. Returns how many of them are pinned.
    template <typename Matches>
    std::size_t drop_if(std::uint64_t address, std::uint64_t bytes, Entries& doomed, Matches&& matches) {
        std::size_t pinned = 0;
        const std::uint64_t first = address >= longest_ ? address - longest_ : 0;
        for (auto at = entries_.lower_bound({first, 0});
             at != entries_.end() && at->second->address - first <= address - first + (bytes - 1);) {
            if (!matches(*at->second)) {
                ++at;
                continue;
            }
            pinned += at->second->pins > 0;
            std::shared_ptr<Entry> entry = std::move(at->second);
            at = entries_.erase(at);
            drop(std::move(entry), doomed);
        }
        if (entries_.empty()) longest_ = 0;
        return pinned;
    }

    const std::uint64_t byte_cap_;
    mutable Mutex mutex_;
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::shared_ptr<Entry>> entries_;  // (address, serial)
    std::list<std::shared_ptr<Entry>> idle_;                                             // oldest use first
    std::uint64_t longest_ = 0;  // no entry in entries_ is longer
    std::uint64_t last_serial_ = 0, last_generation_ = 0;
    RegistrationCacheStats stats_;
};

}  // namespace offpath::memory
