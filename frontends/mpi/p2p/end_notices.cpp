#include "end_notices.h"

#include <mpi.h>

#include <atomic>
#include <deque>
#include <vector>

#include "communicator_state.h"
#include "runtime/runtime.h"

namespace offpath::mpi::p2p {
namespace {

struct OnWire {
    std::uint64_t pairs = 0;
    std::int32_t from = 0, tag = 0;
    std::uint32_t kind = 0, number = 0;
    std::uint64_t here = 0;  // 1, if a notice has arrived
};
static_assert(sizeof(OnWire) == 32);

struct Sent {
    OnWire notice;
    MPI_Request request = MPI_REQUEST_NULL;
};

std::deque<Sent> sent_notices;       // a deque, so that their addresses do not change
std::vector<std::uint32_t> sent_to;  // the number of notices sent, by rank of the world
OnWire coming;                       // receives the next notice
MPI_Request hearing = MPI_REQUEST_NULL;
std::uint32_t heard = 0, not_asked = 0;

// No payload has this tag.
int notice_tag() {
    return payload_tags();
}

void forget_sent() {
    while (!sent_notices.empty()) {
        int flag = 0;
        PMPI_Test(&sent_notices.front().request, &flag, MPI_STATUS_IGNORE);
        if (flag == 0) return;
        sent_notices.pop_front();
    }
}

void listen() {
    coming.here = 0;
    PMPI_Irecv(&coming, sizeof coming, MPI_BYTE, MPI_ANY_SOURCE, notice_tag(), payload_comm(), &hearing);
}

EndNotice take() {
    const EndNotice notice{coming.pairs, coming.from, coming.tag, static_cast<EndNotice::Kind>(coming.kind),
                           coming.number};
    ++heard;
    listen();
    return notice;
}

}  // namespace

void open_notices() {
    sent_to.assign(static_cast<std::size_t>(runtime().size), 0);
    listen();
}

void close_notices() {
    // All notices must be received before the communicator ends.
    std::uint32_t expected = 0;
    PMPI_Reduce_scatter_block(sent_to.data(), &expected, 1, MPI_UINT32_T, MPI_SUM, runtime().service);
    while (heard != expected) {
        PMPI_Wait(&hearing, MPI_STATUS_IGNORE);
        take();
    }
    if (hearing != MPI_REQUEST_NULL) {
        PMPI_Cancel(&hearing);
        PMPI_Wait(&hearing, MPI_STATUS_IGNORE);
    }
    for (Sent& sent : sent_notices)
        PMPI_Wait(&sent.request, MPI_STATUS_IGNORE);
    sent_notices.clear();
}

void send_notice(int to, const EndNotice& notice) {
    forget_sent();
    Sent& sent = sent_notices.emplace_back();
    sent.notice = {notice.pairs, notice.from, notice.tag, notice.kind, notice.number, 1};
    PMPI_Isend(&sent.notice, sizeof sent.notice, MPI_BYTE, to, notice_tag(), payload_comm(), &sent.request);
    ++sent_to[static_cast<std::size_t>(to)];
}

// Asking the host's MPI whether a notice has arrived may cost a process its core if others share the core,
// because some MPI libraries yield it in every call that finds nothing. A notice that the library received
// while it waited for something else is already in memory, so memory is checked first. That is only a hint;
// from time to time the library is asked in any case.
std::optional<EndNotice> next_notice() {
    constexpr std::uint32_t asked_every = 16;
    const bool hint = std::atomic_ref(coming.here).load(std::memory_order_relaxed) != 0;
    if (!hint && ++not_asked % asked_every != 0) return std::nullopt;
    int flag = 0;
    PMPI_Test(&hearing, &flag, MPI_STATUS_IGNORE);
    if (flag == 0) return std::nullopt;
    return take();
}

}  // namespace offpath::mpi::p2p
