// Letters: what ranks tell each other after the loss of a device (departure.h), in messages of the host's MPI
// that a rank may send to another one at any time.
//
// A receive for the next letter is always posted. The host's MPI fills it while it progresses for whatever
// reason, so a look costs one load. Threads: any for has_letter; otherwise one at a time, the caller locks.
#pragma once

#include <atomic>
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

    bool allows(std::uint64_t number) const {
        return number > started ||
               (number >= first && number - first < 64 && (intact >> (number - first) & 1) != 0);
    }
};

struct Letter {
    std::uint32_t communicator = 0;  // the receiver's number of it (departure.h)
    std::uint32_t reply_to = 0;      // the sender's number of it
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

// Where the host's MPI puts the next one, and 1 once it has come.
struct LetterOnWire {
    Letter letter;
    std::uint64_t here = 0;
};
inline LetterOnWire arriving_letter;

// Whether one has come, as far as the host's MPI has progressed.
inline bool has_letter() {
    return std::atomic_ref(arriving_letter.here).load(std::memory_order_relaxed) != 0;
}
// Lets the host's MPI progress.
std::optional<Letter> next_letter();

}  // namespace offpath::mpi
