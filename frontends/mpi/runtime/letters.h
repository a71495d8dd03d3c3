// Letters: what ranks tell each other after the loss of a device (departure.h). Threads: any for has_letter;
// otherwise one at a time, the caller locks.
#pragma once

#include "arriving.h"

#include <cstdint>
#include <optional>

namespace offpath::mpi {

enum class LetterKind : std::uint32_t {
    report,   // the sender starts no more than `calls` collectives on the device
    give_up,  // it takes part in none of the first `calls` any more
    commit,   // the sender has heard from all, its part on the device is over, and `vote` says what it has
};

// What a rank has of the collectives that it has started on the device.
struct Vote {
    std::uint64_t started = 0;  // it has not touched later ones
    // Bit i: collective first + i has given this rank's program nothing, and its data are as they were.
    std::uint64_t first = 0, intact = 0;
    // Bit i: collective first + i has not ended. `complete`: the others have ended with their result, or were
    // given up.
    std::uint64_t outstanding = 0;
    bool complete = false;
    // Bit i: collective first + i has not ended, and nobody writes into its buffers any more.
    std::uint64_t can_receive = 0;
    // Bit i: the rank has a copy of the result of collective started - i.
    std::uint64_t kept = 0;

    bool has_result(std::uint64_t number) const {
        return complete && number <= started &&
               (number < first || (number - first < 64 && (outstanding >> (number - first) & 1) == 0));
    }
    bool receives(std::uint64_t number) const {
        return number >= first && number - first < 64 && (can_receive >> (number - first) & 1) != 0;
    }
    bool keeps(std::uint64_t number) const {
        return number <= started && started - number < 64 && (kept >> (started - number) & 1) != 0;
    }
    bool allows(std::uint64_t number) const {
        return number > started ||
               (number >= first && number - first < 64 && (intact >> (number - first) & 1) != 0);
    }
};

struct Letter {
    std::uint32_t communicator = 0;  // the receiver's number of it (departure.h)
    std::uint32_t reply_to = 0;      // the sender's number of it
    std::uint32_t persistent = 0;    // which collectives of it (Departure)
    std::uint64_t calls = 0;         // that the sender has started there
    LetterKind kind = LetterKind::report;
    int from = 0;  // rank in the world; set by send_letter
    Vote vote{};
};

// Opening is collective over the world. Closing waits until all letters that any rank sent have arrived, and
// drops those that nobody has taken.
void open_letters();
void close_letters();

void send_letter(int world_rank, Letter letter);

inline Arriving<Letter> arriving_letter;

// Whether one has come, as far as the host's MPI has progressed.
inline bool has_letter() {
    return arriving_letter.has_come();
}
// Lets the host's MPI progress.
std::optional<Letter> next_letter();

}  // namespace offpath::mpi
