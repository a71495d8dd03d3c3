// Channel: what a client and its proxy say to each other all the time: commands one way, completions the
// other. Two ways to have one: SharedClientChannel and SharedProxyChannel (shared_channel.h), where both
// sides share memory, and the link's (link/), where they do not.
//
// What is looked at often is not virtual: the client's completion table and the words that waits use are
// plain memory, whoever writes them.
//
// Pairs: whoever writes a completion fills the entry and release-stores `word`; the client's acquire load of
// `word` pairs with it. Then the writer increments `sequence` (seq_cst) and reads `waiting`; a client about
// to sleep increments `waiting` (seq_cst), reads `sequence`, looks at its word once more, and sleeps on
// `sequence` as a futex.
#pragma once

#include "base/status.h"
#include "control/commands.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace offpath::control {

struct CompletionEntry {
    std::atomic<std::uint32_t> word;  // 0: pending, else completion_word(status)
    std::uint32_t source, tag, unused;
    std::uint64_t bytes, unused2;
};
static_assert(sizeof(CompletionEntry) == 32);

constexpr std::uint32_t completion_word(Status status) {
    return 1u + static_cast<std::uint32_t>(-static_cast<std::int32_t>(status));
}
constexpr Status completion_status(std::uint32_t word) {
    const auto value = static_cast<std::int64_t>(word) - 1;
    return value >= 0 && value <= -OFFPATH_ERR_SYSTEM ? static_cast<Status>(-value) : Status::protocol;
}

struct ChannelSizes {
    std::uint32_t completions = 4096;    // a multiple of 128
    std::uint64_t ring_bytes = 1 << 20;  // of commands that the proxy has not taken yet; a power of two
    friend bool operator==(const ChannelSizes&, const ChannelSizes&) = default;
};
bool acceptable(const ChannelSizes& sizes);

// The words that waits use.
struct WaitWords {
    std::atomic<std::uint32_t>* sequence = nullptr;
    std::atomic<std::uint32_t>* waiting = nullptr;

    // For whoever writes completions: after one or several of them.
    void wake() const;
};

// The client's side. Threads: posting and ring() from one at a time; everything else from any.
class ClientChannel {
  public:
    virtual ~ClientChannel() = default;
    ClientChannel(const ClientChannel&) = delete;
    ClientChannel& operator=(const ClientChannel&) = delete;

    // Appends a command. retry: there is no room (the proxy was woken).
    virtual Status post(const Command& command) = 0;
    // Hands over what was posted and wakes the proxy if it sleeps. After one or several posts. Returns
    // whether it had to do something for it.
    virtual bool ring() = 0;

    CompletionEntry& completion(std::uint32_t slot) { return table_[slot]; }
    const CompletionEntry& completion(std::uint32_t slot) const { return table_[slot]; }
    std::uint32_t completions() const { return completions_; }

    // Spinning, where completions do not come by themselves: a thread for which begin_progress() is true
    // calls progress() while it spins, then end_progress(). False: somebody else does it, or nobody needs to.
    virtual bool begin_progress() { return false; }
    virtual void progress() {}
    virtual void end_progress() {}

    // Sleeping: enter, take the sequence, look at what is waited for, sleep, leave.
    std::uint32_t enter_wait();
    // Until a completion comes after `sequence`, or the time is over.
    void sleep(std::uint32_t sequence, std::uint64_t timeout_ns);
    void leave_wait();
    // Wakes other threads of this process that sleep here.
    void wake_waiters();

    // Whether the way to the proxy is gone, where the channel can tell; `why` is for people.
    virtual bool lost(std::string&) { return false; }
    // The way is given up: no completion is written and no memory of the program is touched after this.
    virtual void abandon() {}

  protected:
    ClientChannel(CompletionEntry* table, std::uint32_t completions, WaitWords words)
        : table_(table), completions_(completions), words_(words) {}
    const WaitWords& words() const { return words_; }
    // For channels whose other side does not see `waiting`: before the sequence is taken, and after.
    virtual void announce_wait() {}
    virtual void withdraw_wait() {}

  private:
    CompletionEntry* const table_;
    const std::uint32_t completions_;
    const WaitWords words_;
};

// The proxy's side. Threads: the proxy's only.
class ProxyChannel {
  public:
    virtual ~ProxyChannel() = default;
    ProxyChannel(const ProxyChannel&) = delete;
    ProxyChannel& operator=(const ProxyChannel&) = delete;

    using Next = NextRecord;
    // The next command, a private copy that stays valid until the following call. broken: the client has
    // written nonsense; the channel is of no use any more.
    virtual Next next(std::span<const std::byte>& record) = 0;

    std::uint32_t completions() const { return completions_; }
    // slot < completions(). The client may see it at once, but sleeps on until wake().
    virtual void complete(std::uint32_t slot, Status status) = 0;
    virtual void complete(std::uint32_t slot, Status status, std::uint32_t source, std::uint32_t tag,
                          std::uint64_t bytes) = 0;
    virtual void wake() = 0;

    // What turns readable when a sleeping proxy gets a command; -1: something else wakes it.
    virtual int doorbell() const { return -1; }
    virtual void clear_doorbell() {}
    // Says that this proxy is about to sleep. Returns false if there are commands after all.
    virtual bool prepare_sleep() = 0;
    virtual void end_sleep() {}

  protected:
    explicit ProxyChannel(std::uint32_t completions) : completions_(completions) {}

  private:
    const std::uint32_t completions_;
};

}  // namespace offpath::control
