// Channel: the fast path between a client and its proxy, with commands in one direction and completions in
// the other. There are two kinds: SharedClientChannel and SharedProxyChannel (shared_channel.h) where both
// sides share memory, and the link's (link/) where they do not.
//
// Data that is read often is not behind virtual calls: the client's completion table and the words that waits
// use are plain memory, whichever kind writes them.
//
// Pairs: the writer of a completion fills the entry and release-stores `word`; the client's acquire load of
// `word` pairs with it. The writer then increments `sequence` (seq_cst) and reads `waiting`. A client about
// to sleep increments `waiting` (seq_cst), reads `sequence`, checks its word once more, and sleeps on
// `sequence` as a futex.
#pragma once

#include "base/shared_parts.h"
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
    std::uint64_t bytes;
    shared_parts::Word parts;  // of the operation's shared copy; the client clears it before the start
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
    std::uint64_t ring_bytes = 1 << 20;  // for commands not yet taken by the proxy; a power of two
    friend bool operator==(const ChannelSizes&, const ChannelSizes&) = default;
};
bool acceptable(const ChannelSizes& sizes);

// The words that waits use.
struct WaitWords {
    std::atomic<std::uint32_t>* sequence = nullptr;
    std::atomic<std::uint32_t>* waiting = nullptr;

    // Called by the writer of completions, after one or several of them.
    void wake() const;
};

// The client's side. Threads: post() and ring() from one at a time; everything else from any.
class ClientChannel {
  public:
    virtual ~ClientChannel() = default;
    ClientChannel(const ClientChannel&) = delete;
    ClientChannel& operator=(const ClientChannel&) = delete;

    // Appends a command. retry: there is no room; the proxy was woken.
    virtual Status post(const Command& command) = 0;
    // Publishes the posted commands and wakes the proxy if it sleeps. Called after one or several posts.
    // Returns whether it had to do any work for that.
    virtual bool ring() = 0;

    CompletionEntry& completion(std::uint32_t slot) { return table_[slot]; }
    const CompletionEntry& completion(std::uint32_t slot) const { return table_[slot]; }
    std::uint32_t completions() const { return completions_; }

    // Completions may need progress by the client. A spinning thread for which begin_progress() is true calls
    // progress() while it spins, then end_progress(). False: another thread does it, or it is not needed.
    virtual bool begin_progress() { return false; }
    virtual void progress() {}
    virtual void end_progress() {}

    // To sleep: call enter_wait(), which returns the sequence; check the awaited word; sleep(); leave_wait().
    std::uint32_t enter_wait();
    // Sleeps until a completion comes after `sequence`, or the timeout passes.
    void sleep(std::uint32_t sequence, std::uint64_t timeout_ns);
    void leave_wait();
    // Wakes other threads of this process that sleep here.
    void wake_waiters();

    // Whether the connection to the proxy is lost, where the channel can tell; `why` is for people.
    virtual bool lost(std::string&) { return false; }
    // Gives up the connection: from then on no completion is written and no memory of the program is touched.
    virtual void abandon() {}

  protected:
    ClientChannel(CompletionEntry* table, std::uint32_t completions, WaitWords words)
        : table_(table), completions_(completions), words_(words) {}
    const WaitWords& words() const { return words_; }
    // Only channels whose other side does not see `waiting` need these. They are called before the sequence
    // is read, and after the wait.
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
    // The next command, as a private copy that is valid until the following call. broken: the client has
    // written invalid data; the channel is unusable.
    virtual Next next(std::span<const std::byte>& record) = 0;

    std::uint32_t completions() const { return completions_; }
    // slot < completions(). The client may see the completion at once, but a sleeping client is woken only by
    // wake().
    virtual void complete(std::uint32_t slot, Status status) = 0;
    virtual void complete(std::uint32_t slot, Status status, std::uint32_t source, std::uint32_t tag,
                          std::uint64_t bytes) = 0;
    virtual void wake() = 0;
    // The word of the slot's shared copy; null: the two sides share no memory.
    virtual shared_parts::Word* parts(std::uint32_t /*slot*/) { return nullptr; }

    // Becomes readable when a sleeping proxy gets a command. -1: the proxy is woken in another way.
    virtual int doorbell() const { return -1; }
    virtual void clear_doorbell() {}
    // Announces that this proxy is about to sleep. False: there are commands, so it must not sleep.
    virtual bool prepare_sleep() = 0;
    virtual void end_sleep() {}

  protected:
    explicit ProxyChannel(std::uint32_t completions) : completions_(completions) {}

  private:
    const std::uint32_t completions_;
};

}  // namespace offpath::control
