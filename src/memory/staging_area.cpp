#include "memory/staging_area.h"

#include "base/log.h"

#include <cerrno>
#include <cstring>
#include <new>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace offpath::memory {

namespace {

constexpr std::uint64_t magic = 0x31474154535046ff;
constexpr std::uint32_t version = 1;
constexpr std::uint32_t ring_entries = StagingArea::max_slots;
constexpr std::size_t slots_offset = 4096;

bool in_limits(std::uint32_t slots, std::uint32_t slot_bytes) {
    return slots >= StagingArea::min_slots && slots <= StagingArea::max_slots &&
           slot_bytes >= StagingArea::min_slot_bytes && slot_bytes <= StagingArea::max_slot_bytes &&
           slot_bytes % StagingArea::min_slot_bytes == 0;
}

}  // namespace

// Words that different sides write are on different cache lines.
struct StagingArea::Header {  // NOLINT(clang-analyzer-optin.performance.Padding)
    std::uint64_t magic_number;
    std::uint32_t layout, slots, slot_bytes;
    alignas(64) std::atomic<std::uint32_t> requests_tail;
    std::atomic<std::uint32_t> agent_sleeps;
    alignas(64) std::atomic<std::uint32_t> answers_tail;
    std::atomic<std::uint32_t> proxy_sleeps;
    alignas(64) StagingRequest requests[ring_entries];
    alignas(64) StagingAnswer answers[ring_entries];
};

StagingArea::Header& StagingArea::header() const {
    static_assert(sizeof(Header) <= slots_offset);
    static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
    return *std::launder(reinterpret_cast<Header*>(mapping_.data()));
}

std::size_t StagingArea::area_bytes(std::uint32_t slots, std::uint32_t slot_bytes) {
    return slots_offset + std::size_t{slots} * slot_bytes;
}

std::uint64_t StagingArea::slot_offset(std::uint32_t index) const {
    return slots_offset + std::uint64_t{index} * slot_bytes_;
}

Status StagingArea::create(std::uint32_t slots, std::uint32_t slot_bytes, StagingArea& area, File& bell,
                           StagingFiles& for_client) {
    if (!in_limits(slots, slot_bytes)) return Status::invalid;
    StagingArea made;
    File file;
    if (const Status status = make_memory_file("offpath-staging", area_bytes(slots, slot_bytes), file);
        status != Status::ok)
        return status;
    if (const Status status = Mapping::map(file.get(), area_bytes(slots, slot_bytes), made.mapping_);
        status != Status::ok)
        return status;
    made.mapping_.populate();
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        log::error(Code::resources, "socketpair: {}", std::strerror(errno));
        return Status::system;
    }
    auto* const fresh = new (made.mapping_.data()) Header{};
    fresh->magic_number = magic;
    fresh->layout = version;
    fresh->slots = slots;
    fresh->slot_bytes = slot_bytes;
    made.slots_ = slots;
    made.slot_bytes_ = slot_bytes;
    area = std::move(made);
    bell = File(ends[0]);
    for_client.area = std::move(file);
    for_client.bell = File(ends[1]);
    return Status::ok;
}

Status StagingArea::open(int fd, StagingArea& area, std::string& problem) {
    const char* why = nullptr;
    struct stat facts {};
    if (check_memory_file(fd, slots_offset, why) != Status::ok || fstat(fd, &facts) != 0) {
        problem = fmt::format("staging area: {}", why == nullptr ? std::strerror(errno) : why);
        return Status::invalid;
    }
    StagingArea opened;
    const auto bytes = static_cast<std::size_t>(facts.st_size);
    if (const Status status = Mapping::map(fd, bytes, opened.mapping_); status != Status::ok) {
        problem = "staging area: cannot be mapped";
        return status;
    }
    const Header& found = opened.header();
    opened.slots_ = found.slots;
    opened.slot_bytes_ = found.slot_bytes;
    if (found.magic_number != magic || found.layout != version) {
        problem = fmt::format("staging area: layout {}, this client speaks {}", found.layout, version);
        return found.magic_number == magic ? Status::version : Status::invalid;
    }
    if (!in_limits(opened.slots_, opened.slot_bytes_) ||
        bytes < area_bytes(opened.slots_, opened.slot_bytes_)) {
        problem = fmt::format("staging area: {} slots of {} bytes in {} bytes", opened.slots_,
                              opened.slot_bytes_, bytes);
        return Status::invalid;
    }
    area = std::move(opened);
    return Status::ok;
}

void StagingArea::post(const StagingRequest& request) {
    header().requests[produced_ % ring_entries] = request;
    header().requests_tail.store(++produced_, std::memory_order_seq_cst);
}

void StagingArea::post(const StagingAnswer& answer) {
    header().answers[produced_ % ring_entries] = answer;
    header().answers_tail.store(++produced_, std::memory_order_seq_cst);
}

Status StagingArea::take(StagingAnswer& answer) {
    const std::uint32_t waiting = header().answers_tail.load(std::memory_order_acquire) - consumed_;
    if (waiting == 0) return Status::retry;
    if (waiting > slots_) return Status::protocol;
    answer = header().answers[consumed_++ % ring_entries];
    return Status::ok;
}

bool StagingArea::has_answers() const {
    return header().answers_tail.load(std::memory_order_seq_cst) != consumed_;
}

bool StagingArea::take(StagingRequest& request) {
    if (header().requests_tail.load(std::memory_order_acquire) == consumed_) return false;
    request = header().requests[consumed_++ % ring_entries];
    return true;
}

bool StagingArea::agent_must_be_woken() {
    return header().agent_sleeps.load(std::memory_order_seq_cst) != 0 &&
           header().agent_sleeps.exchange(0, std::memory_order_seq_cst) != 0;
}

bool StagingArea::proxy_must_be_woken() {
    return header().proxy_sleeps.load(std::memory_order_seq_cst) != 0 &&
           header().proxy_sleeps.exchange(0, std::memory_order_seq_cst) != 0;
}

void StagingArea::proxy_rests(bool resting) {
    header().proxy_sleeps.store(resting ? 1 : 0, std::memory_order_seq_cst);
}

bool StagingArea::agent_rests() {
    header().agent_sleeps.store(1, std::memory_order_seq_cst);
    if (header().requests_tail.load(std::memory_order_seq_cst) == consumed_) return true;
    header().agent_sleeps.store(0, std::memory_order_seq_cst);
    return false;
}

void ring(int bell) {
    const char byte = 1;
    // A full socket holds enough rings to wake the other end. A closed socket is noticed elsewhere.
    (void)!send(bell, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool wait_for_ring(int bell) {
    char byte = 0;
    for (;;) {
        const ssize_t got = recv(bell, &byte, 1, 0);
        if (got > 0) return true;
        if (got == 0 || errno != EINTR) return false;
    }
}

bool silence(int bell) {
    char byte = 0;
    for (int i = 0; i < 64; ++i) {
        const ssize_t got = recv(bell, &byte, 1, MSG_DONTWAIT);
        if (got < 0 && errno != EINTR) return errno == EAGAIN || errno == EWOULDBLOCK;
        if (got == 0) return false;
    }
    return true;
}

}  // namespace offpath::memory
