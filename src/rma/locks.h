// LockQueue: the lock of a window at one target. Exclusive askers are served in the order of asking. Who asks
// for a shared lock never waits for somebody that only waits: the holders may need it before they let go (a
// collective inside their epochs), and MPI libraries grant it. So programs that never stop sharing keep
// writers waiting. Pure. Threads: one.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_set>
#include <vector>

namespace offpath::rma {

class LockQueue {
  public:
    struct Asker {
        std::uint32_t rank = 0;
        bool exclusive = false;
        std::uint64_t token = 0;  // names the question at the asker
    };
    enum class Answer { granted, waits, refused };

    // refused: the rank holds the lock, or waits for it, already.
    Answer lock(const Asker& asker);
    // The same, for who does not wait: nothing has happened where it is not granted.
    Answer try_lock(const Asker& asker);
    // False: the rank does not hold it. `granted` are those whose turn it is now.
    bool unlock(std::uint32_t rank, std::vector<Asker>& granted);
    // Nobody waits any more.
    std::vector<Asker> give_up();
    bool held() const { return exclusive_ || !holders_.empty(); }

  private:
    bool free_for(const Asker& asker) const { return asker.exclusive ? !held() : !exclusive_; }
    void grant(const Asker& asker);

    std::unordered_set<std::uint32_t> holders_;
    bool exclusive_ = false;
    std::deque<Asker> waiting_;
};

}  // namespace offpath::rma
