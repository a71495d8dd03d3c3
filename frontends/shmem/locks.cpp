#include "locks.h"

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>

#include "core.h"
#include "waiting.h"

namespace offpath::shmem {

namespace {

constexpr std::uint32_t turn_bit = 0x80000000u;
constexpr int home = 0;

struct Words {
    std::uint32_t* tail;   // at the home PE
    std::uint32_t* state;  // at each PE
};

Words words_of(volatile long* lock) {
    auto* words = reinterpret_cast<std::uint32_t*>(const_cast<long*>(lock));
    return {words, words + 1};
}

std::uint32_t me() {
    return static_cast<std::uint32_t>(my_pe()) + 1;
}

std::uint32_t fetching(Amo kind, std::uint32_t* word, std::uint32_t operand, std::uint32_t compare, int pe) {
    std::uint32_t result = 0;
    amo(default_context(), kind, sizeof result, word, operand, compare, &result, pe, false);
    return result;
}

void update(Amo kind, std::uint32_t* word, std::uint32_t operand, int pe) {
    amo(default_context(), kind, sizeof operand, word, operand, 0, nullptr, pe, false);
}

// The locks that a thread of this process holds or waits for.
class Threads {
  public:
    void enter(const volatile long* lock) {
        if (!multithreaded()) return;
        std::unique_lock guard(mutex_);
        left_.wait(guard, [&] { return inside_.insert(lock).second; });
    }
    bool try_enter(const volatile long* lock) {
        if (!multithreaded()) return true;
        const std::lock_guard guard(mutex_);
        return inside_.insert(lock).second;
    }
    void leave(const volatile long* lock) {
        if (!multithreaded()) return;
        {
            const std::lock_guard guard(mutex_);
            inside_.erase(lock);
        }
        left_.notify_all();
    }

  private:
    std::mutex mutex_;
    std::condition_variable left_;
    std::set<const volatile long*> inside_;
};
Threads threads;

}  // namespace

void set_lock(volatile long* lock) {
    threads.enter(lock);
    const Words words = words_of(lock);
    const std::uint32_t before = fetching(Amo::swap, words.tail, me(), 0, home);
    if (before == 0) return;
    if (before == me()) fail("this PE holds the lock already");
    update(Amo::or_, words.state, me(), static_cast<int>(before) - 1);
    wait_for([&] { return (load(words.state) & turn_bit) != 0; });
}

int test_lock(volatile long* lock) {
    if (!threads.try_enter(lock)) return 1;
    const Words words = words_of(lock);
    if (fetching(Amo::compare_swap, words.tail, me(), 0, home) == 0) return 0;
    threads.leave(lock);
    polled_in_vain();
    return 1;
}

void clear_lock(volatile long* lock) {
    quiet(default_context());
    const Words words = words_of(lock);
    if ((load(words.state) & ~turn_bit) == 0) {
        const std::uint32_t last = fetching(Amo::compare_swap, words.tail, 0, me(), home);
        if (last == 0) fail("nobody holds the lock");
        if (last == me()) {
            // No other PE can have become the successor meanwhile.
            fetching(Amo::swap, words.state, 0, 0, my_pe());
            threads.leave(lock);
            return;
        }
        wait_for([&] { return (load(words.state) & ~turn_bit) != 0; });
    }
    const std::uint32_t next = fetching(Amo::swap, words.state, 0, 0, my_pe()) & ~turn_bit;
    update(Amo::or_, words.state, turn_bit, static_cast<int>(next) - 1);
    threads.leave(lock);
}

}  // namespace offpath::shmem
