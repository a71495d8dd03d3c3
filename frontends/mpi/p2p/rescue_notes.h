// Notes: what the two ends of a message tell each other when a device has lost it (rescue.h), in messages of
// the host's MPI on a communicator of the front end. A receive for the next note is always posted, and the
// host's MPI fills it while it progresses for whatever reason.
//
// Threads: under the lock (lock.h), except has_rescue_note.
#pragma once

#include <offpath/messages.h>

#include <atomic>
#include <cstdint>
#include <optional>

namespace offpath::mpi::p2p {

struct RescueNote {
    enum Kind : std::uint32_t {
        offer,    // the sender: the message comes by the host's MPI, with `tag`
        request,  // the receiver: its device has lost the message
        refusal,  // the sender: it has no such message any more
    };
    Kind kind = offer;
    std::int32_t tag = 0;
    offpath_message_key_t key{};
    std::int32_t from = 0;  // rank in the world; set by send_rescue_note
    std::uint32_t unused = 0;
};

// Collective over the world.
void open_rescue_notes();
// Returns when all notes that any rank sent have arrived; `take` gets those that nobody has taken.
void close_rescue_notes(void (*take)(const RescueNote& note));

void send_rescue_note(int world_rank, RescueNote note);
// Lets the host's MPI progress.
std::optional<RescueNote> next_rescue_note();

struct RescueNoteOnWire {
    RescueNote note;
    std::uint64_t here = 0;  // 1 once one has come
};
inline RescueNoteOnWire arriving_rescue_note;

// Whether one has come, as far as the host's MPI has progressed.
inline bool has_rescue_note() {
    return std::atomic_ref(arriving_rescue_note.here).load(std::memory_order_relaxed) != 0;
}

}  // namespace offpath::mpi::p2p
