// SimMemory: the memory of one rank, as the worker that serves it reaches it. It charges what the platform's
// back end costs, and moves bytes if there are any (Cluster::moves_data()).
//
// map          the worker has a pointer
// xgvmi        the network card moves bytes from host to host; the worker itself reads and writes them across
//              the bus between host and device
// cma          a system call copies, at the cost of the worker's core; a range of a region is mapped
// staged       bytes cross the bus between host and device, which serves one transfer after the other; over a
//              stream, the client's agent sends or takes them
//
// Without data, all buffers of all ranks lie in one range of addresses that a few pages stand behind: engines
// may read and write there, and find nothing.
//
// Ownership: owns the range. Threads: one.
#pragma once

#include "memory/host_memory.h"
#include "sim/machine/agent.h"
#include "sim/machine/platform.h"
#include "sim/servers/link.h"

#include <cstddef>

namespace offpath::sim {

class Cluster;
class Worker;

// Addresses without memory of their own.
class EmptyRange {
  public:
    // At least `bytes` long. Throws std::system_error.
    explicit EmptyRange(std::size_t bytes);
    ~EmptyRange();
    EmptyRange(const EmptyRange&) = delete;
    EmptyRange& operator=(const EmptyRange&) = delete;
    std::byte* begin() const { return begin_; }
    std::size_t bytes() const { return bytes_; }

  private:
    std::byte* begin_ = nullptr;
    std::size_t bytes_ = 0;
};

class SimMemory final : public memory::HostMemory {
  public:
    // The links of the bus are for back end staged only; otherwise they may be null.
    SimMemory(Cluster& cluster, Worker& worker, Core& host_core, HostMemoryKind kind, Link* to_device,
              Link* to_host)
        : cluster_(cluster),
          worker_(worker),
          kind_(kind),
          to_device_(to_device),
          to_host_(to_host),
          agent_(cluster, host_core) {}

    memory::BackEnd back_end(const memory::HostRange& range) const override;
    std::byte* direct(const memory::HostRange& range, std::uint64_t offset, std::uint64_t bytes) override;
    Status read(const memory::HostRange& range, std::uint64_t offset, void* destination, std::size_t bytes,
                Completion* completion) override;
    Status write(const memory::HostRange& range, std::uint64_t offset, const void* source, std::size_t bytes,
                 Completion* completion) override;
    NetworkPlace network_place(const memory::HostRange& range, std::uint64_t offset,
                               std::uint64_t bytes) override;
    Status copy_places(const NetworkPlace& from, const NetworkPlace& to, std::size_t bytes,
                       Completion* completion) override;
    bool reads_at_once(const memory::HostRange& range, std::uint64_t, std::uint64_t) override {
        return kind_ == HostMemoryKind::cma && !is_mapped(range);
    }

    // Across the bus, the client copies within the host on request.
    bool copies_within(const memory::HostRange&, const memory::HostRange&) const override {
        return kind_ == HostMemoryKind::staged;
    }
    Status copy(const memory::HostRange& from, std::uint64_t from_offset, const memory::HostRange& to,
                std::uint64_t to_offset, std::size_t bytes, Completion* completion) override;

    // Of the client. It has something to do for back end staged over a stream only.
    Agent& agent() { return agent_; }

  private:
    // Whether the worker has a pointer.
    bool is_mapped(const memory::HostRange& range) const {
        return kind_ == HostMemoryKind::map || (kind_ == HostMemoryKind::cma && range.region != 0);
    }
    struct Crossing {
        SimMemory* memory = nullptr;
        Completion* completion = nullptr;
        std::byte* to = nullptr;
        const std::byte* from = nullptr;
        std::size_t bytes = 0;
        double work_s = 0;  // of the worker, when it takes them
    };
    // `completion` ends at `time`, and the bytes are there then.
    Status end_at(Time time, std::byte* to, const std::byte* from, std::size_t bytes, Completion* completion,
                  double work_s = 0);
    Status move(std::byte* to, const std::byte* from, std::size_t bytes, Link* bus, Completion* completion);
    Status cross(std::byte* to, const std::byte* from, std::size_t bytes, Link* bus, Completion* completion);

    Cluster& cluster_;
    Worker& worker_;
    const HostMemoryKind kind_;
    Link *to_device_, *to_host_;
    Agent agent_;
};

}  // namespace offpath::sim
