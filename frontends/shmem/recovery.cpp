#include "recovery.h"

#include "base/log.h"
#include "base/patience.h"
#include "device.h"
#include "life.h"
#include "peer_watch.h"
#include "pending.h"
#include "replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

namespace offpath::shmem {

namespace {

using State = offpath_mark_state_t;

constexpr int most_attempts = 8;
constexpr std::uint64_t end_limit_ns = 5'000'000'000;

struct Recovery {
    bool open = false, running = false;
    // Words that devices write, of the present devices and of those before them.
    std::array<std::uint64_t*, 2> words{};
    std::size_t present = 0;
    std::uint64_t count = 0;
};
Recovery recovery;

// Also if a loss ends the attempt by an exception.
struct Running {
    Running() { recovery.running = true; }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() { recovery.running = false; }
};

std::size_t words_bytes() {
    return OFFPATH_MARKS_WORDS(static_cast<std::size_t>(world.pes)) * sizeof(std::uint64_t);
}

void keep_marks() {
    std::uint64_t* const words = recovery.words[recovery.present];
    std::memset(words, 0, words_bytes());
    must(offpath_window_keep_marks(world.window, words), "the marks of symmetric memory");
}

std::vector<Unfinished> take_unfinished() {
    std::vector<Unfinished> all = journal.take_all();
    for (Context* context : all_contexts())
        for (Pending* pending : {&context->near, &context->far})
            pending->take_unfinished(all);
    std::ranges::sort(all, {}, &Unfinished::order);
    return all;
}

// What the devices before the present ones have marked for this PE at `pe`.
offpath_status_t read_marks(int pe, std::vector<std::uint64_t>& marks) {
    const std::uint64_t* const mine = recovery.words[1 - recovery.present] + OFFPATH_LEDGER_WORDS(world.pes) +
                                      OFFPATH_MARK_WORDS * static_cast<std::size_t>(world.pe);
    const auto offset = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(mine) -
                                                 world.segments[heap_segment].begin);
    const PeerSegment& heap = world.peers[static_cast<std::size_t>(pe)].segments[heap_segment];
    const offpath_place_t there{static_cast<std::uint32_t>(pe), heap.address + offset, nullptr, 0};
    marks.resize(OFFPATH_MARK_WORDS);
    return waited_for([&](offpath_request_h* request) {
        return offpath_get(world.window, marks.data(), marks.size() * sizeof(std::uint64_t), &there, request);
    });
}

// Why the operation cannot be started again; null: it can, or it need not be (`done`).
const char* judge(const Unfinished& one, State state, std::uint64_t value, bool& done) {
    done = false;
    if (one.kind == Unfinished::Kind::put || one.kind == Unfinished::Kind::strided_put) {
        done = state >= OFFPATH_MARK_APPLIED;
        return state == OFFPATH_MARK_BEGUN ? "its target may have seen it, and changed the memory since"
                                           : nullptr;
    }
    const bool fetches = one.kind == Unfinished::Kind::amo && one.result != nullptr;
    if (fetches && one.amo == Amo::fetch) return nullptr;
    if (state == OFFPATH_MARK_NOT_BEGUN) return nullptr;
    if (state == OFFPATH_MARK_BEGUN)
        return "the lost device may have applied a part of it, and it must happen exactly once";
    if (fetches && state != OFFPATH_MARK_APPLIED_WITH_RESULT)
        return "the lost device has applied it, and its result is lost";
    if (fetches) std::memcpy(one.result, &value, one.bytes);
    done = true;
    return nullptr;
}

// Removes what is done already. On an error of a device, nothing is known.
offpath_status_t settle(std::vector<Unfinished>& all) {
    std::vector<std::vector<std::uint64_t>> marks(static_cast<std::size_t>(world.pes));
    for (const Unfinished& one : all) {
        auto& of_pe = marks[static_cast<std::size_t>(one.pe)];
        if (one.mark == 0 || one.never_applied || !of_pe.empty()) continue;
        if (const offpath_status_t status = read_marks(one.pe, of_pe); status != OFFPATH_OK) return status;
    }
    std::erase_if(all, [&](Unfinished& one) {
        if (one.kind == Unfinished::Kind::get || one.never_applied) return false;
        std::uint64_t value = 0;
        const State state = one.mark == 0 ? OFFPATH_MARK_BEGUN
                                          : offpath_mark_state(marks[static_cast<std::size_t>(one.pe)].data(),
                                                               one.mark, &value);
        bool done = false;
        if (const char* problem = judge(one, state, value, done); problem != nullptr)
            fail(fmt::format("an operation on PE {} cannot run again after the loss of a device: {}", one.pe,
                             problem),
                 Code::operation);
        one.never_applied = !done;
        return done;
    });
    return OFFPATH_OK;
}

offpath_status_t run_again(std::vector<Unfinished>& all) {
    std::size_t next = 0;
    offpath_status_t status = OFFPATH_OK;
    for (; next < all.size(); ++next) {
        Unfinished& one = all[next];
        journal.mark(one);
        one.never_applied = false;
        if (status = start_again(one); status != OFFPATH_OK) break;
    }
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(next));
    return status;
}

// False: the devices cannot be replaced; a line says why, or the caller does. `unfinished` keeps what is not
// done when this attempt loses a device, too.
bool attempt(std::vector<Unfinished>& unfinished, std::uint64_t limit_ns, offpath_status_t& status) {
    status = offpath_context_end_session(world.context);
    if (status != OFFPATH_OK) {
        log::warn(Code::device_lost, "PE {}: the device hangs and may still write memory", world.pe);
        return false;
    }
    forget_peer_watch();
    recovery.present = 1 - recovery.present;
    // Marks of the devices before the last ones are not needed any more.
    if (!attach_again(limit_ns, keep_marks)) {
        status = OFFPATH_ERR_UNAVAILABLE;
        return false;
    }
    journal.begin_marks();
    status = settle(unfinished);
    if (status != OFFPATH_OK) return false;
    // From here on no PE reads the marks of the lost devices.
    status = try_to_meet();
    if (status != OFFPATH_OK) return true;
    open_peer_watch();
    status = run_again(unfinished);
    return true;
}

bool recover(offpath_status_t status, std::uint64_t limit_ns) {
    if (!recovery.open || recovery.running || !is_loss(status) || pe_has_died()) return false;
    const Running running;
    std::vector<Unfinished> unfinished = take_unfinished();
    const std::size_t operations = unfinished.size();
    bool goes_on = true;
    for (int i = 0; goes_on && status != OFFPATH_OK && i < most_attempts; ++i)
        goes_on = attempt(unfinished, limit_ns, status);
    if (status != OFFPATH_OK) {
        recovery.open = false;
        forget_devices();
        return false;
    }
    journal.clear();
    for (Context* context : all_contexts())
        raise(context->finished, context->started.load(std::memory_order_relaxed));
    log::info("PE {} has attached again after the loss of a device, with {} unfinished operations", world.pe,
              operations);
    ++recovery.count;
    return true;
}

}  // namespace

bool is_loss(offpath_status_t status) {
    return status == OFFPATH_ERR_PEER_LOST || status == OFFPATH_ERR_ACCESS || status == OFFPATH_ERR_CANCELED;
}

bool can_recover() {
    if (world.threads || world.pes < 2 || world.pes > most_recovering_pes || all_pes_are_near()) return false;
    return std::ranges::all_of(world.peers, [](const Peer& peer) {
        for (std::size_t id = 0; id < segment_count; ++id)
            if (world.segments[id].bytes > 0 && !peer.segments[id].shared) return false;
        return true;
    });
}

void open_recovery() {
    for (std::uint64_t*& words : recovery.words)
        words = static_cast<std::uint64_t*>(internal_alloc(words_bytes()));
    recovery.open = true;
    recovery.present = 0;
    keep_marks();
    journal.open(world.pes);
}

void drop_recovery() {
    recovery = {};
    journal.close();
}

void close_recovery() {
    if (recovery.count > 0 && world.pe == 0)
        log::warn(Code::device_lost, "PE 0: the job went on after the loss of {} device{}", recovery.count,
                  recovery.count > 1 ? "s" : "");
    recovery.open = false;
    journal.close();
}

bool recovered(offpath_status_t status) {
    constexpr std::uint64_t most_ns = 3600 * std::uint64_t{1'000'000'000};
    return recover(status, std::min(lost_after_ns(), most_ns));
}

bool recovered_at_end(offpath_status_t status) {
    return recover(status, end_limit_ns);
}

}  // namespace offpath::shmem
