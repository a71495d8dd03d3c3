// Pending: what a context has handed to the device with a request of its own, so that the end of it is one
// load: no question to the device. For large operations that nobody waits for; there are few of them at a
// time, the others are counted (device.h). Blocking puts of middle size leave their bytes in a slot of the
// library's own memory, which comes back with the request.
//
// Threads: any, if the program has several. Whoever waits holds the lock, so that two that wait both wait.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

struct offpath_request;

namespace offpath::shmem {

class Pending {
  public:
    struct Entry {
        offpath_request* request = nullptr;
        std::byte* slot = nullptr;
    };

    bool empty() const { return count_.load(std::memory_order_acquire) == 0; }
    // Takes `entry` over. With add() nothing gets lost, but has_room() says when there are many.
    void add(const Entry& entry);
    // Forgets what is done.
    bool has_room();
    // Returns when all that was added before is done.
    void wait();

  private:
    std::unique_lock<std::mutex> lock();
    void end(const Entry& entry);

    std::vector<Entry> entries_;
    std::atomic<std::size_t> count_{0};
    std::mutex mutex_;
};

// Memory for blocking puts, shared with the device.
inline constexpr std::size_t put_slot_bytes = std::size_t{128} << 10;
inline constexpr std::size_t put_slot_count = 32;

// Once, at the start; collective, as internal_alloc is.
void open_put_slots();
// Null: all are in use.
std::byte* take_put_slot();
void give_back_put_slot(std::byte* slot);

}  // namespace offpath::shmem
