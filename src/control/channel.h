// Channel: the shared memory of one client and its proxy: the command ring, the completion words, and what
// each side needs to know to wake the other. The daemon makes it (a sealed memfd: a client cannot shrink it
// under the daemon's feet); the client maps what it was sent. Each side owns its mapping.
//
// Layout: a header page, the completion table, the ring.
//
// Pairs and wake-ups
// - A command: the client stores `tail`, then loads `proxy_sleeping`; the proxy stores `proxy_sleeping`, then
//   loads `tail` once more. All four are seq_cst, so at least one side sees the other's store.
// - A completion: the proxy fills the entry and release-stores `word`; the client's acquire load of `word`
//   pairs with it. Then the proxy increments `sequence` (seq_cst) and reads `client_waiting`; a client about
//   to sleep increments `client_waiting` (seq_cst), reads `sequence`, looks at its word once more, and sleeps
//   on `sequence` as a futex.
#pragma once

#include "base/status.h"
#include "control/commands.h"
#include "control/file_descriptor.h"
#include "control/ring.h"

#include <atomic>
#include <cstdint>
#include <memory>

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

struct ChannelHeader {
    std::uint64_t magic;
    std::uint32_t completions, unused;
    std::uint64_t ring_bytes;
    RingIndices ring;
    alignas(cache_line) std::atomic<std::uint32_t> sequence;
    alignas(cache_line) std::atomic<std::uint32_t> client_waiting;
    alignas(cache_line) std::atomic<std::uint32_t> proxy_sleeping;
};
static_assert(sizeof(ChannelHeader) <= 4096);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

struct ChannelSizes {
    std::uint32_t completions = 4096;
    std::uint64_t ring_bytes = 1 << 20;  // a power of two
};

// The mapping, common to both sides.
class ChannelMemory {
  public:
    ChannelMemory() = default;
    ChannelMemory(ChannelMemory&& other) noexcept;
    ChannelMemory& operator=(ChannelMemory&& other) noexcept;
    ~ChannelMemory();

    // Makes a new one; `fd` is what the client gets.
    static Status create(const ChannelSizes& sizes, ChannelMemory& memory, FileDescriptor& fd);
    // Maps the one that a daemon sent. protocol: not a channel.
    static Status map(int fd, ChannelMemory& memory);

    ChannelHeader& header() const { return *reinterpret_cast<ChannelHeader*>(base_); }
    CompletionEntry* completions() const { return reinterpret_cast<CompletionEntry*>(base_ + 4096); }
    std::span<std::byte> ring() const {
        return {base_ + 4096 + sizes_.completions * sizeof(CompletionEntry), sizes_.ring_bytes};
    }
    const ChannelSizes& sizes() const { return sizes_; }

  private:
    std::byte* base_ = nullptr;
    std::size_t bytes_ = 0;
    ChannelSizes sizes_;
};

// The client's side. Threads: posting and ring() from one at a time; everything about completions from any.
class ClientChannel {
  public:
    ClientChannel(ChannelMemory memory, FileDescriptor doorbell);

    // Appends a command. retry: the ring is full (the proxy was woken).
    Status post(const Command& command);
    // Wakes the proxy if it sleeps. After one or several posts. Returns whether it had to.
    bool ring();

    CompletionEntry& completion(std::uint32_t slot) { return memory_.completions()[slot]; }
    std::uint32_t completions() const { return memory_.sizes().completions; }

    // Sleeping: enter, take the sequence, look at what is waited for, sleep, leave.
    std::uint32_t enter_wait();
    // Until the proxy completes something after `sequence`, or the time is over.
    void sleep(std::uint32_t sequence, std::uint64_t timeout_ns);
    void leave_wait();
    // Wakes other threads of this process that sleep here.
    void wake_waiters();

  private:
    ChannelMemory memory_;
    FileDescriptor doorbell_;
    RingProducer producer_;
};

// The proxy's side. Threads: the proxy's only.
class ProxyChannel {
  public:
    ProxyChannel(ChannelMemory memory, FileDescriptor doorbell);

    RingConsumer& commands() { return consumer_; }
    std::uint32_t completions() const { return memory_.sizes().completions; }
    // slot < completions(). The client sees it at once, but sleeps on until wake().
    void complete(std::uint32_t slot, Status status);
    void complete(std::uint32_t slot, Status status, std::uint32_t source, std::uint32_t tag,
                  std::uint64_t bytes);
    void wake();

    int doorbell() const { return doorbell_.get(); }
    // Says that this proxy is about to sleep. Returns false if there are commands after all.
    bool prepare_sleep();
    void end_sleep();

  private:
    ChannelMemory memory_;
    FileDescriptor doorbell_;
    RingConsumer consumer_;
};

}  // namespace offpath::control
