#include "rescue_notes.h"

#include <mpi.h>

#include <deque>
#include <vector>

#include "runtime/runtime.h"

namespace offpath::mpi::p2p {
namespace {

constexpr int rescue_tag = 2;  // letters have another one (runtime/letters.h)

struct SentNote {
    RescueNoteOnWire wire;
    MPI_Request request = MPI_REQUEST_NULL;
};

std::deque<SentNote> sent_rescue_notes;      // a deque, so that their addresses do not change
std::vector<std::uint32_t> rescue_notes_to;  // the number of notes sent, by rank of the world
MPI_Request next_note = MPI_REQUEST_NULL;
std::uint32_t notes_heard = 0;

void listen_for_notes() {
    std::atomic_ref(arriving_rescue_note.here).store(0, std::memory_order_relaxed);
    PMPI_Irecv(&arriving_rescue_note, sizeof arriving_rescue_note, MPI_BYTE, MPI_ANY_SOURCE, rescue_tag,
               runtime().service, &next_note);
}

RescueNote take_note() {
    const RescueNote note = arriving_rescue_note.note;
    ++notes_heard;
    listen_for_notes();
    return note;
}

}  // namespace

void open_rescue_notes() {
    rescue_notes_to.assign(static_cast<std::size_t>(runtime().size), 0);
    listen_for_notes();
}

void close_rescue_notes(void (*take)(const RescueNote& note)) {
    std::uint32_t expected = 0;
    PMPI_Reduce_scatter_block(rescue_notes_to.data(), &expected, 1, MPI_UINT32_T, MPI_SUM, runtime().service);
    while (notes_heard != expected) {
        PMPI_Wait(&next_note, MPI_STATUS_IGNORE);
        take(take_note());
    }
    PMPI_Cancel(&next_note);
    PMPI_Wait(&next_note, MPI_STATUS_IGNORE);
    for (SentNote& sent : sent_rescue_notes)
        PMPI_Wait(&sent.request, MPI_STATUS_IGNORE);
    sent_rescue_notes.clear();
}

void send_rescue_note(int world_rank, RescueNote note) {
    note.from = runtime().rank;
    SentNote& sent = sent_rescue_notes.emplace_back();
    sent.wire = {note, 1};
    PMPI_Isend(&sent.wire, sizeof sent.wire, MPI_BYTE, world_rank, rescue_tag, runtime().service,
               &sent.request);
    ++rescue_notes_to[static_cast<std::size_t>(world_rank)];
}

std::optional<RescueNote> next_rescue_note() {
    if (next_note == MPI_REQUEST_NULL) return std::nullopt;
    int flag = 0;
    PMPI_Test(&next_note, &flag, MPI_STATUS_IGNORE);
    if (flag == 0) return std::nullopt;
    return take_note();
}

}  // namespace offpath::mpi::p2p
