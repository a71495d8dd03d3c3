#include "sim/machine/sim_memory.h"

#include "sim/machine/cluster.h"
#include "sim/machine/worker.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace offpath::sim {
namespace {

constexpr std::size_t pages_behind = 2 << 20;

[[noreturn]] void fail(const char* call) {
    throw std::system_error(errno, std::generic_category(), call);
}

}  // namespace

EmptyRange::EmptyRange(std::size_t bytes) : bytes_((bytes / pages_behind + 1) * pages_behind) {
    void* const reserved =
        mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) fail("mmap");
    begin_ = static_cast<std::byte*>(reserved);
    const int file = memfd_create("offpath-sim", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, pages_behind) != 0) fail("memfd_create");
    for (std::size_t at = 0; at < bytes_; at += pages_behind) {
        if (mmap(begin_ + at, pages_behind, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) ==
            MAP_FAILED)
            fail("mmap");
    }
    close(file);
}

EmptyRange::~EmptyRange() {
    munmap(begin_, bytes_);
}

memory::BackEnd SimMemory::back_end(const memory::HostRange& range) const {
    if (kind_ == HostMemoryKind::cma && is_mapped(range)) return memory::BackEnd::map;
    switch (kind_) {
        case HostMemoryKind::map:
            return memory::BackEnd::map;
        case HostMemoryKind::cma:
            return memory::BackEnd::cma;
        case HostMemoryKind::staged:
            return memory::BackEnd::staged;
        case HostMemoryKind::xgvmi:
            return memory::BackEnd::xgvmi;
    }
    return memory::BackEnd::cma;
}

std::byte* SimMemory::direct(const memory::HostRange& range, std::uint64_t offset, std::uint64_t bytes) {
    if (!is_mapped(range)) return nullptr;
    if (offset > range.bytes || bytes > range.bytes - offset) return nullptr;
    return reinterpret_cast<std::byte*>(range.address) + offset;
}

NetworkPlace SimMemory::network_place(const memory::HostRange& range, std::uint64_t offset,
                                      std::uint64_t bytes) {
    if (kind_ != HostMemoryKind::xgvmi || offset > range.bytes || bytes > range.bytes - offset) return {};
    return {this, range.address + offset};
}

// The card reads the bytes across the bus and writes them back across it, at the same time.
Status SimMemory::copy_places(const NetworkPlace& from, const NetworkPlace& to, std::size_t bytes,
                              Completion* completion) {
    const Platform::Work& device = worker_.work();
    worker_.charge_seconds(device.send_s);
    const Time head = to_device_->pass(bytes, worker_.present()).head;
    return end_at(to_host_->pass(bytes, head).tail, reinterpret_cast<std::byte*>(to.address),
                  reinterpret_cast<const std::byte*>(from.address), bytes, completion, device.receive_s);
}

Status SimMemory::read(const memory::HostRange& range, std::uint64_t offset, void* destination,
                       std::size_t bytes, Completion* completion) {
    if (offset > range.bytes || bytes > range.bytes - offset) return Status::access;
    return move(static_cast<std::byte*>(destination),
                reinterpret_cast<const std::byte*>(range.address) + offset, bytes, to_device_, completion);
}

Status SimMemory::write(const memory::HostRange& range, std::uint64_t offset, const void* source,
                        std::size_t bytes, Completion* completion) {
    if (offset > range.bytes || bytes > range.bytes - offset) return Status::access;
    return move(reinterpret_cast<std::byte*>(range.address) + offset, static_cast<const std::byte*>(source),
                bytes, to_host_, completion);
}

Status SimMemory::move(std::byte* to, const std::byte* from, std::size_t bytes, Link* bus,
                       Completion* completion) {
    const Platform& platform = cluster_.platform();
    if (kind_ == HostMemoryKind::map || kind_ == HostMemoryKind::cma) {
        worker_.charge_seconds(platform.host_memory_call_s +
                               static_cast<double>(bytes) / platform.host_memory_Bps);
        if (cluster_.moves_data()) std::memcpy(to, from, bytes);
        return Status::ok;
    }
    return cross(to, from, bytes, bus, completion);
}

Status SimMemory::cross(std::byte* to, const std::byte* from, std::size_t bytes, Link* bus,
                        Completion* completion) {
    const Platform::Work &host = cluster_.platform().host, &device = worker_.work();
    if (kind_ == HostMemoryKind::xgvmi) {
        worker_.charge_seconds(device.send_s);
        return end_at(bus->pass(bytes, worker_.present()).tail, to, from, bytes, completion,
                      device.receive_s);
    }
    if (cluster_.platform().protocol != Protocol::stream)
        return end_at(bus->pass(bytes, worker_.present()).tail, to, from, bytes, completion);
    const auto length = static_cast<double>(bytes);
    if (bus == to_host_) {
        worker_.charge_seconds(device.send_s + device.send_byte_s * length);
        const Time there = bus->pass(bytes, worker_.present()).tail;
        agent_.serve(there, host.receive_s + host.receive_byte_s * length + host.send_s, [=, this, &device] {
            end_at(cluster_.queue().now() + to_device_->latency(), to, from, bytes, completion,
                   device.receive_s);
        });
        return Status::in_progress;
    }
    worker_.charge_seconds(device.send_s);
    const Time asked = worker_.present() + to_host_->latency();
    agent_.serve(asked, host.receive_s + host.send_s + host.send_byte_s * length, [=, this, &device] {
        end_at(bus->pass(bytes, cluster_.queue().now()).tail, to, from, bytes, completion,
               device.receive_s + device.receive_byte_s * length);
    });
    return Status::in_progress;
}

Status SimMemory::copy(const memory::HostRange& from, std::uint64_t from_offset, const memory::HostRange& to,
                       std::uint64_t to_offset, std::size_t bytes, Completion* completion) {
    if (!copies_within(from, to)) return Status::unsupported;
    if (from_offset > from.bytes || bytes > from.bytes - from_offset || to_offset > to.bytes ||
        bytes > to.bytes - to_offset)
        return Status::access;
    // The request is a message to the client, and so is the answer.
    const Platform::Work &host = cluster_.platform().host, &device = worker_.work();
    worker_.charge_seconds(device.send_s);
    const Time asked = worker_.present() + to_host_->latency();
    const double copying = seconds_of(transfer_time(bytes, host.copy_Bps));
    agent_.serve(asked, host.receive_s + host.send_s + copying, [=, this, &device] {
        end_at(cluster_.queue().now() + to_device_->latency(),
               reinterpret_cast<std::byte*>(to.address) + to_offset,
               reinterpret_cast<const std::byte*>(from.address) + from_offset, bytes, completion,
               device.receive_s);
    });
    return Status::in_progress;
}

Status SimMemory::end_at(Time time, std::byte* to, const std::byte* from, std::size_t bytes,
                         Completion* completion, double work_s) {
    auto* crossing = new Crossing{this, completion, to, from, bytes, work_s};
    cluster_.queue().at(
        time,
        [](void* object, std::uint64_t) {
            auto* over = static_cast<Crossing*>(object);
            SimMemory& self = *over->memory;
            self.worker_.submit(self.cluster_.queue().now(), [over] {
                over->memory->worker_.charge_seconds(over->work_s);
                if (over->memory->cluster_.moves_data()) std::memcpy(over->to, over->from, over->bytes);
                Completion* const done = over->completion;
                delete over;
                (*done)(Status::ok);
            });
        },
        crossing);
    return Status::in_progress;
}

}  // namespace offpath::sim
