// Pending: operations that a context has given to the device with a request of their own, so checking for
// their end is one load and no question to the device. It is for large operations that no caller waits for.
// Few of them are outstanding at a time; all other operations are counted (device.h). Blocking puts of medium
// size copy their bytes to a slot of the library's own memory, which is free again when the request is done.
//
// Threads: any, if the program has several. A waiting thread holds the lock, so if two threads wait, both
// return only after the operations are done.
#pragma once

#include "unfinished.h"

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
        // Of a transfer within the node, which the processor can copy again if the device is lost.
        void* to = nullptr;
        const void* from = nullptr;
        std::size_t bytes = 0;
        Unfinished unfinished{};  // where the journal is on
    };

    bool empty() const { return count_.load(std::memory_order_acquire) == 0; }
    // Takes ownership of `entry`. add() always accepts it; has_room() says whether there are too many.
    void add(const Entry& entry);
    // Removes finished operations first.
    bool has_room();
    // Returns when all operations that were added before are done.
    void wait();
    // Empties it, and appends what is not known to be done.
    void take_unfinished(std::vector<Unfinished>& unfinished);

  private:
    std::unique_lock<std::mutex> lock();
    bool end(const Entry& entry);
    void count_entries();

    std::vector<Entry> entries_;
    std::atomic<std::size_t> count_{0};
    std::mutex mutex_;
};

// Memory for blocking puts, shared with the device.
inline constexpr std::size_t put_slot_bytes = std::size_t{128} << 10;
inline constexpr std::size_t put_slot_count = 32;

// Called once, at the start. Collective, like internal_alloc.
void open_put_slots();
// Null: all slots are in use.
std::byte* take_put_slot();
void give_back_put_slot(std::byte* slot);

}  // namespace offpath::shmem
