// HostStaging: the client's half of staged transfers. It sends what the device requests straight from the
// program's memory, writes incoming data into it, and collects answers until flush(). Threads: the thread
// that progresses the transport, one at a time.
#pragma once

#include "link/outgoing.h"
#include "memory/checked_memory.h"

#include <atomic>
#include <cstdint>
#include <vector>

namespace offpath::link {

class HostStaging {
  public:
    HostStaging(transport::Transport& transport, Outgoing& out) : transport_(transport), out_(out) {}

    void connect(std::uint64_t token, transport::Endpoint* control, transport::Endpoint* bulk) {
        token_ = token;
        control_ = control;
        bulk_ = bulk;
    }

    // These return the transport's status; after an error the link is unusable.
    Status on_fetch(std::span<const std::byte> items, std::uint32_t count);
    Status on_copy(std::span<const std::byte> items, std::uint32_t count);
    Status on_store(const Header& header, const transport::Incoming& message);
    Status flush();
    bool has_answers() const { return !answers_.empty(); }
    // Payloads that the transport is writing into the program's memory.
    std::size_t fetching() const { return fetching_; }

    std::uint64_t bytes_to_device() const { return bytes_to_device_.load(std::memory_order_relaxed); }
    std::uint64_t bytes_to_host() const { return bytes_to_host_.load(std::memory_order_relaxed); }

  private:
    struct StoreFetch : Completion {
        HostStaging* owner = nullptr;
        std::uint64_t address = 0;
        std::uint32_t id = 0, bytes = 0;
        bool direct = false;  // into the program's memory; else into `own`, to be copied from there
        std::vector<std::byte> own;
    };
    Status send_part(const FetchItem& item, std::uint32_t offset, std::uint32_t bytes, bool direct);
    Status put(std::uint64_t address, const std::byte* data, std::uint32_t bytes);
    void complain(const char* what, std::uint64_t address, std::uint32_t bytes);
    void answer(std::uint32_t id, Status status);
    static void on_fetched(Completion* self, Status status);
    static void count(std::atomic<std::uint64_t>& counter, std::uint64_t bytes) {
        counter.store(counter.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
    }

    transport::Transport& transport_;
    Outgoing& out_;
    memory::CheckedMemory memory_;
    std::uint64_t token_ = 0;
    transport::Endpoint* control_ = nullptr;
    transport::Endpoint* bulk_ = nullptr;
    transport::FreeList<StoreFetch> fetches_;
    std::size_t fetching_ = 0;
    unsigned complaints_ = 0;
    std::vector<std::byte> answers_, copy_;
    std::atomic<std::uint64_t> bytes_to_device_{0}, bytes_to_host_{0};
};

}  // namespace offpath::link
