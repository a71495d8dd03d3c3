#include "control/shared_channel.h"

#include "base/clock.h"
#include "base/file_size.h"
#include "base/log.h"
#include "base/lost_device.h"
#include "base/patience.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

namespace offpath::control {
namespace {

constexpr std::uint64_t channel_magic = 0x32304c48434f5046;  // "FPOCHL02"

std::size_t total_bytes(const ChannelSizes& sizes) {
    return 4096 + sizes.completions * sizeof(CompletionEntry) + sizes.ring_bytes;
}

std::byte* map_shared(int fd, std::size_t bytes) {
    void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return base == MAP_FAILED ? nullptr : static_cast<std::byte*>(base);
}

}  // namespace

ChannelMemory::ChannelMemory(ChannelMemory&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), bytes_(other.bytes_), sizes_(other.sizes_) {}

ChannelMemory& ChannelMemory::operator=(ChannelMemory&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(bytes_, other.bytes_);
    std::swap(sizes_, other.sizes_);
    return *this;
}

ChannelMemory::~ChannelMemory() {
    if (base_ != nullptr) munmap(base_, bytes_);
}

Status ChannelMemory::create(const ChannelSizes& sizes, ChannelMemory& memory, FileDescriptor& fd) {
    if (!acceptable(sizes)) return Status::invalid;
    FileDescriptor made(memfd_create("offpath-channel", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    const std::size_t bytes = total_bytes(sizes);
    if (!made || !set_file_bytes(made.get(), bytes) ||
        fcntl(made.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        log::error(Code::resources, "channel: a memfd of {} bytes: {}", bytes, std::strerror(errno));
        return Status::system;
    }
    ChannelMemory result;
    result.base_ = map_shared(made.get(), bytes);
    if (result.base_ == nullptr) {
        log::error(Code::resources, "channel: mapping {} bytes: {}", bytes, std::strerror(errno));
        return Status::memory;
    }
    result.bytes_ = bytes;
    result.sizes_ = sizes;
    // A new memfd is filled with zeros, which is the right initial value for all atomics.
    result.header().magic = channel_magic;
    result.header().completions = sizes.completions;
    result.header().ring_bytes = sizes.ring_bytes;
    memory = std::move(result);
    fd = std::move(made);
    return Status::ok;
}

Status ChannelMemory::map(int fd, ChannelMemory& memory) {
    struct stat facts {};
    if (fstat(fd, &facts) != 0 || facts.st_size < 4096) return Status::protocol;
    ChannelMemory result;
    result.bytes_ = static_cast<std::size_t>(facts.st_size);
    result.base_ = map_shared(fd, result.bytes_);
    if (result.base_ == nullptr) return Status::memory;
    result.sizes_ = {result.header().completions, result.header().ring_bytes};
    if (result.header().magic != channel_magic || !acceptable(result.sizes_) ||
        total_bytes(result.sizes_) != result.bytes_)
        return Status::protocol;
    memory = std::move(result);
    return Status::ok;
}

SharedClientChannel::SharedClientChannel(ChannelMemory memory, FileDescriptor doorbell, pid_t daemon)
    : ClientChannel(memory.completions(), memory.sizes().completions,
                    {&memory.header().sequence, &memory.header().client_waiting}),
      memory_(std::move(memory)),
      doorbell_(std::move(doorbell)),
      producer_(&memory_.header().ring, memory_.ring()),
      daemon_(daemon),
      signs_(lost_after_ns()) {}

Status SharedClientChannel::post(const Command& command) {
    const auto room = producer_.reserve(record_bytes(command));
    if (room.empty()) {
        ring();
        return Status::retry;
    }
    encode_command(command, room);
    producer_.commit();
    return Status::ok;
}

bool SharedClientChannel::ring() {
    auto& sleeping = memory_.header().proxy_sleeping;
    if (sleeping.load(std::memory_order_seq_cst) == 0 || sleeping.exchange(0) == 0) return false;
    ring_doorbell();
    return true;
}

void SharedClientChannel::ring_doorbell() {
    const std::uint64_t one = 1;
    // The write fails only if the eventfd's counter is full, and then the proxy wakes anyway.
    [[maybe_unused]] const auto written = write(doorbell_.get(), &one, sizeof one);
}

bool SharedClientChannel::lost(std::string& why) {
    std::lock_guard lock(signs_mutex_);
    ChannelHeader& header = memory_.header();
    const std::uint64_t now = now_ns();
    if (why_lost_.empty() && signs_.due(now)) {
        const std::uint32_t asked = header.asked.load(std::memory_order_relaxed);
        const bool answered = header.answered.load(std::memory_order_acquire) == asked;
        const ThreadState proxy = answered ? ThreadState{} : thread_state(daemon_, header.proxy_thread);
        switch (signs_.look(now, answered, proxy)) {
            case LifeSigns::Next::wait:
                break;
            case LifeSigns::Next::ask:
                header.asked.store(asked + 1, std::memory_order_release);
                ring_doorbell();
                break;
            case LifeSigns::Next::lost:
                why_lost_ = fmt::format(
                    "it is stopped or hangs: no answer for {:.0f} s{}",
                    static_cast<double>(signs_.silent_ns()) * 1e-9,
                    proxy.known ? fmt::format(" (its thread's state: {})", proxy.letter) : std::string());
        }
    }
    if (why_lost_.empty()) return false;
    why = why_lost_;
    return true;
}

SharedClientChannel::~SharedClientChannel() {
    lost_device::forget_writes(&memory_.header().writing);
}

void SharedClientChannel::abandon() {
    ChannelHeader& header = memory_.header();
    header.given_up.store(1, std::memory_order_seq_cst);
    if (header.marks_writes != 0) lost_device::record_writes(&header.writing, daemon_, header.proxy_thread);
    ring_doorbell();
}

SharedProxyChannel::SharedProxyChannel(ChannelMemory memory, FileDescriptor doorbell)
    : ProxyChannel(memory.sizes().completions),
      memory_(std::move(memory)),
      doorbell_(std::move(doorbell)),
      consumer_(&memory_.header().ring, memory_.ring()) {
    memory_.header().marks_writes = 1;
    memory_.header().proxy_thread = static_cast<std::int32_t>(gettid());
}

void SharedProxyChannel::complete(std::uint32_t slot, Status status) {
    memory_.completions()[slot].word.store(completion_word(status), std::memory_order_release);
}

void SharedProxyChannel::complete(std::uint32_t slot, Status status, std::uint32_t source, std::uint32_t tag,
                                  std::uint64_t bytes) {
    CompletionEntry& entry = memory_.completions()[slot];
    entry.source = source;
    entry.tag = tag;
    entry.bytes = bytes;
    complete(slot, status);
}

void SharedProxyChannel::wake() {
    WaitWords{&memory_.header().sequence, &memory_.header().client_waiting}.wake();
}

void SharedProxyChannel::clear_doorbell() {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = read(doorbell_.get(), &count, sizeof count);
    ChannelHeader& header = memory_.header();
    header.answered.store(header.asked.load(std::memory_order_acquire), std::memory_order_release);
}

bool SharedProxyChannel::prepare_sleep() {
    memory_.header().proxy_sleeping.store(1, std::memory_order_seq_cst);
    return !consumer_.has_records();
}

void SharedProxyChannel::end_sleep() {
    memory_.header().proxy_sleeping.store(0, std::memory_order_relaxed);
}

}  // namespace offpath::control
