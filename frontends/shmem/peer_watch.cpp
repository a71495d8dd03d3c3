#include "peer_watch.h"

#include "base/clock.h"
#include "base/proc_threads.h"
#include "core.h"
#include "device.h"
#include "device_loss.h"
#include "job_end.h"
#include "recovery.h"
#include "world.h"

#include <fmt/format.h>
#include <offpath/loss.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace offpath::shmem {

namespace {

constexpr std::uint32_t tag = 0;
constexpr std::uint64_t answer_ns = 100'000'000;
constexpr std::uint64_t name_ns = 2'000'000'000;  // a device may wait long for a CPU
// The higher a PE's number, the later it writes its line. So usually only the first PE does.
constexpr auto before_speaking = std::chrono::milliseconds(50), next_pe = std::chrono::milliseconds(100);
constexpr int most_next = 12;
// A PE may end right behind a barrier, whose last step for this PE is still on its way.
constexpr std::uint64_t leaving_ns = 500'000'000;

offpath_request_h watch = nullptr;
std::uint32_t* said = nullptr;  // symmetric: another PE has reported the loss and is ending the job
std::atomic<bool> noticed{false};
std::uint64_t noticed_ns = 0;  // by must_act_on_loss()

bool has_been_said() {
    return said != nullptr && __atomic_load_n(said, __ATOMIC_ACQUIRE) != 0;
}

// Tells all PEs that are still reachable; errors no longer matter.
void tell_others() {
    static const std::uint32_t yes = 1;
    const auto offset =
        static_cast<std::size_t>(reinterpret_cast<std::byte*>(said) - world.segments[heap_segment].begin);
    offpath_request_h last = nullptr;
    for (int pe = 0; pe < world.pes; ++pe) {
        const PeerSegment& heap = world.peers[static_cast<std::size_t>(pe)].segments[heap_segment];
        if (pe == world.pe) continue;
        if (heap.mapped != nullptr) {
            __atomic_store_n(reinterpret_cast<std::uint32_t*>(heap.mapped + offset), yes, __ATOMIC_RELEASE);
            continue;
        }
        if (world.window == nullptr) continue;
        const offpath_place_t there{static_cast<std::uint32_t>(pe), heap.address + offset, nullptr, 0};
        offpath_request_h request = nullptr;
        if (offpath_put(world.window, &yes, sizeof yes, &there, &request) == OFFPATH_OK) last = request;
    }
    if (last != nullptr) (void)offpath_request_wait_for(last, answer_ns);
}

// Finds lost PEs: a receive from one ends at once. Finds none if the device does not answer in time.
std::vector<int> lost_pes() {
    std::vector<int> lost;
    std::vector<offpath_request_h> questions(static_cast<std::size_t>(world.pes), nullptr);
    for (int pe = 0; pe < world.pes; ++pe) {
        if (pe == world.pe) continue;
        auto& question = questions[static_cast<std::size_t>(pe)];
        if (offpath_recv_offload(world.team, nullptr, 0, static_cast<std::uint32_t>(pe), tag, &question) !=
            OFFPATH_OK)
            return lost;
    }
    const std::uint32_t me = static_cast<std::uint32_t>(world.pe);
    offpath_request_h sent = nullptr, done = nullptr;
    // This message follows the questions, so when it has arrived, their answers have too.
    if (offpath_recv_offload(world.team, nullptr, 0, me, tag + 1, &done) == OFFPATH_OK &&
        offpath_send_offload(world.team, nullptr, 0, me, tag + 1, &sent) == OFFPATH_OK)
        (void)offpath_request_wait_for(done, name_ns);
    for (int pe = 0; pe < world.pes; ++pe) {
        auto* const question = questions[static_cast<std::size_t>(pe)];
        if (question != nullptr && offpath_request_test(question) == OFFPATH_ERR_PEER_LOST)
            lost.push_back(pe);
    }
    return lost;
}

}  // namespace

void fail_lost(const std::string& text) {
    std::this_thread::sleep_for(before_speaking + next_pe * std::min(world.pe, most_next));
    if (has_been_said()) end_job(1);
    if (said != nullptr) tell_others();
    fail(text, Code::shmem_lost);
}

void open_peer_watch() {
    if (said == nullptr) said = static_cast<std::uint32_t*>(internal_alloc(sizeof *said));
    must(offpath_recv_offload(world.team, nullptr, 0, OFFPATH_ANY_SOURCE, tag, &watch),
         "the watch for lost PEs");
}

void close_peer_watch() {
    if (watch == nullptr) return;
    offpath_request_h message = nullptr;
    offpath_status_t status =
        offpath_send_offload(world.team, nullptr, 0, static_cast<std::uint32_t>(world.pe), tag, &message);
    if (status == OFFPATH_OK) status = offpath_request_wait(message);
    if (status != OFFPATH_OK && !goes_on_after(status) && !journal.on())
        fail_device(status, "the end of the watch for lost PEs");
    (void)offpath_request_free(message);
    // A loss that no call had to detect before is detected by the next calls.
    (void)offpath_request_wait(watch);
    (void)offpath_request_free(watch);
    watch = nullptr;
    said = nullptr;
}

void check_peers() {
    if (has_been_said()) end_job(1);
    if (watch == nullptr) return;
    const offpath_status_t status = offpath_request_test(watch);
    if (status == OFFPATH_IN_PROGRESS || status == OFFPATH_OK || goes_on_after(status) ||
        noticed.exchange(true))
        return;
    const std::vector<int> lost = lost_pes();
    if (recovered(status)) {
        noticed = false;
        return;
    }
    if (lost.empty()) fail_device(status, "another PE or its device");
    fail_lost(fmt::format("PE {} or its device is gone", lost.front()));
}

bool must_act_on_loss() {
    if (has_been_said()) return true;
    if (watch == nullptr) return false;
    const offpath_status_t status = offpath_request_test(watch);
    if (status == OFFPATH_IN_PROGRESS || status == OFFPATH_OK) return false;
    if (offpath_context_device_state(world.context) != OFFPATH_DEVICE_SERVES) return true;
    if (noticed_ns == 0) noticed_ns = now_ns();
    return now_ns() - noticed_ns > leaving_ns;
}

void forget_peer_watch() {
    if (watch != nullptr) (void)offpath_request_free(watch);
    watch = nullptr;
    noticed_ns = 0;
}

void drop_peer_watch() {
    forget_peer_watch();
    said = nullptr;
}

void forget_devices() {
    watch = nullptr;
    world.window = nullptr;
}

bool pe_has_died() {
    return std::ranges::any_of(world.peers, [](const Peer& peer) {
        if (peer.process == 0) return false;
        const char state = thread_letter(peer.process, peer.process);
        return state == '\0' || state == 'Z' || state == 'X';
    });
}

}  // namespace offpath::shmem
