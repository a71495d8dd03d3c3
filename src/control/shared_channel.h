// The channel of a client and a proxy that share memory: the command ring, the completion words, and the
// state by which each side wakes the other. The daemon makes it, as a sealed memfd that a client cannot
// shrink. The client maps the memfd that it was sent. Each side owns its mapping.
//
// Layout: a header page, the completion table, the ring.
//
// Pairs and wake-ups: completions as in channel.h. For a command the client stores `tail`, then loads
// `proxy_sleeping`; the proxy stores `proxy_sleeping`, then loads `tail` once more. All four are seq_cst, so
// at least one side sees the other's store.
//
// Signs of life: a waiting client writes a new number into `asked` and rings the doorbell, whether the proxy
// sleeps or not. The proxy copies the number to `answered` when it clears the doorbell (life_signs.h). A
// client that gives up its proxy sets `given_up`. The proxy reads that word before it touches the client's
// memory, because the proxy itself may have been stopped for hours. Around each write it raises `writing`. So
// a client that gives up its proxy, and then finds 0 there, knows that none is under way or will follow.
#pragma once

#include "base/file_descriptor.h"
#include "control/channel.h"
#include "control/life_signs.h"
#include "control/ring.h"

#include <mutex>
#include <string>

namespace offpath::control {

struct ChannelHeader {
    std::uint64_t magic;
    std::uint32_t completions;
    std::uint32_t marks_writes;  // 1: the proxy raises `writing`
    std::uint64_t ring_bytes;
    RingIndices ring;
    alignas(cache_line) std::atomic<std::uint32_t> sequence;
    alignas(cache_line) std::atomic<std::uint32_t> client_waiting;
    alignas(cache_line) std::atomic<std::uint32_t> proxy_sleeping;
    std::int32_t proxy_thread;  // its number, in its own PID namespace
    std::atomic<std::uint32_t> answered;
    alignas(cache_line) std::atomic<std::uint32_t> asked;
    std::atomic<std::uint32_t> given_up;
    // Raised while the proxy writes into the client's memory by system call. On its own line, because that is
    // often.
    alignas(cache_line) std::atomic<std::uint32_t> writing;
};
static_assert(sizeof(ChannelHeader) <= 4096);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// The mapping, which both sides use.
class ChannelMemory {
  public:
    ChannelMemory() = default;
    ChannelMemory(ChannelMemory&& other) noexcept;
    ChannelMemory& operator=(ChannelMemory&& other) noexcept;
    ~ChannelMemory();

    // Makes a new one; `fd` is for the client.
    static Status create(const ChannelSizes& sizes, ChannelMemory& memory, FileDescriptor& fd);
    // Maps one that a daemon sent. protocol: not a channel.
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

class SharedClientChannel final : public ClientChannel {
  public:
    // `daemon`: its process. 0: it is not visible from here, so the state of its proxies is unknown.
    SharedClientChannel(ChannelMemory memory, FileDescriptor doorbell, pid_t daemon = 0);
    ~SharedClientChannel() override;
    SharedClientChannel(const SharedClientChannel&) = delete;
    SharedClientChannel& operator=(const SharedClientChannel&) = delete;

    Status post(const Command& command) override;
    bool ring() override;
    bool lost(std::string& why) override;
    void abandon() override;

  private:
    void ring_doorbell();

    ChannelMemory memory_;
    FileDescriptor doorbell_;
    RingProducer producer_;
    const pid_t daemon_;
    std::mutex signs_mutex_;  // guards what follows
    LifeSigns signs_;
    std::string why_lost_;
};

class SharedProxyChannel final : public ProxyChannel {
  public:
    SharedProxyChannel(ChannelMemory memory, FileDescriptor doorbell);

    Next next(std::span<const std::byte>& record) override { return consumer_.next(record); }
    void complete(std::uint32_t slot, Status status) override;
    void complete(std::uint32_t slot, Status status, std::uint32_t source, std::uint32_t tag,
                  std::uint64_t bytes) override;
    void wake() override;
    shared_parts::Word* parts(std::uint32_t slot) override { return &memory_.completions()[slot].parts; }
    // Whether the client has given up this channel but lives on.
    bool given_up() const { return memory_.header().given_up.load(std::memory_order_acquire) != 0; }
    int doorbell() const override { return doorbell_.get(); }
    void clear_doorbell() override;
    bool prepare_sleep() override;
    void end_sleep() override;

  private:
    ChannelMemory memory_;
    FileDescriptor doorbell_;
    RingConsumer consumer_;
};

}  // namespace offpath::control
