// The kinds of steps: schedules, messages that the proxies match, and accesses to windows.
#pragma once

#include "sim/programs/patterns.h"

#include <cstddef>

namespace offpath::sim {

// A buffer of a rank: memory of its own if the cluster moves data, otherwise addresses only.
class Buffer {
  public:
    Buffer(Cluster& cluster, std::size_t bytes);
    memory::HostRange range() const;
    // With data: writes the bytes that `value` gives for each offset, or compares with them.
    void fill(const std::function<std::byte(std::size_t)>& value);
    bool holds(const std::function<std::byte(std::size_t)>& value) const;
    std::span<std::byte> bytes() { return own_; }

  private:
    std::vector<std::byte> own_;
    std::byte* begin_ = nullptr;
    std::size_t size_ = 0;
};

// The byte at an offset of what a rank sends. Differs between ranks and along the buffer.
std::byte pattern_byte(std::uint32_t rank, std::size_t offset);

std::unique_ptr<Step> make_schedule_step(const std::string& pattern, Job& job, std::uint32_t rank,
                                         std::uint64_t bytes);
// Receives from the rank before, and sends to the rank after.
std::unique_ptr<Step> make_ring_step(Job& job, std::uint32_t rank, std::uint64_t bytes);
// Puts into, or gets from, the rank after, and flushes.
std::unique_ptr<Step> make_window_step(Job& job, std::uint32_t rank, std::uint64_t bytes, bool puts);

}  // namespace offpath::sim
