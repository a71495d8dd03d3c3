// Plan: a schedule prepared for execution. It holds the index from messages to ops, and a stock of instance
// records for replays. Ownership: its creator; it must outlive its running instances. Threads: the engine's
// thread only.
#pragma once

#include "schedule/schedule.h"

#include <memory>
#include <unordered_map>
#include <vector>

namespace offpath::engine {

struct Instance;

class Plan {
  public:
    // The schedule must be valid (schedule::validate).
    explicit Plan(schedule::Schedule schedule);
    ~Plan();
    Plan(const Plan&) = delete;
    Plan& operator=(const Plan&) = delete;

    const schedule::Schedule& schedule() const { return schedule_; }
    // The recv op or the send op for (peer, tag); npos: there is none.
    static constexpr schedule::OpId npos = schedule::Schedule::npos;
    schedule::OpId find_recv(std::uint32_t peer, std::uint64_t tag) const;
    schedule::OpId find_send(std::uint32_t peer, std::uint64_t tag) const;
    // Whether this rank forwards nothing and computes nothing. The senders of what it receives then wait
    // until it has arrived: a rank that is done with an exchange without forwarding knows that all others
    // have what it has sent. After the loss of a device they can do without that rank.
    bool confirms() const { return confirms_; }
    std::size_t user_slots() const { return user_slots_; }
    schedule::OpId shared_copy() const { return shared_copy_; }

    // Records of finished instances, recycled by the next start.
    std::unique_ptr<Instance> take() const;
    void give_back(std::unique_ptr<Instance> instance) const;

  private:
    struct Key {
        std::uint64_t tag;
        std::uint32_t peer;
        schedule::OpKind kind;
        friend bool operator==(const Key&, const Key&) = default;
    };
    struct Hash {
        std::size_t operator()(const Key& key) const {
            return (key.tag * 0x9E3779B97F4A7C15ull) ^
                   (std::uint64_t{key.peer} << 8 | static_cast<std::uint64_t>(key.kind));
        }
    };
    schedule::Schedule schedule_;
    std::unordered_map<Key, schedule::OpId, Hash> exchange_;
    std::size_t user_slots_ = 0;
    schedule::OpId shared_copy_ = npos;
    bool confirms_ = true;
    mutable std::vector<std::unique_ptr<Instance>> stock_;
};

}  // namespace offpath::engine
