#include "target/host/joint_copies.h"

#include "base/short_spin.h"

#include <unistd.h>

#include <ctime>

namespace offpath::target {
namespace {

constexpr std::uint64_t piece_spin_ns = 200'000;  // longer than a piece takes
constexpr std::uint64_t piece_nap_ns = 100'000;

}  // namespace

bool JointCopies::find_place(std::size_t& place) {
    for (place = 0; place < JointArea::places; ++place) {
        const std::uint32_t bit = 1U << place;
        if ((used_.fetch_or(bit, std::memory_order_acquire) & bit) == 0) return true;
    }
    return false;
}

// Waits until the program has done its pieces, of `bytes` bytes. False: it is gone.
bool JointCopies::wait(const JointCopy& joint, std::uint64_t bytes) {
    ShortSpin spin(piece_spin_ns);
    while (joint.copied() < bytes) {
        if (spin.again()) continue;
        if (line_.lost()) return false;
        const timespec nap{0, static_cast<long>(piece_nap_ns)};
        nanosleep(&nap, nullptr);
    }
    return true;
}

Status JointCopies::run(std::uint64_t bytes, const Copy& copy, const Ask& ask) {
    JointArea* const area = line_.joint();
    std::size_t place = 0;
    if (area == nullptr || bytes < JointCopy::least_bytes || !find_place(place)) return copy(0, bytes);
    JointCopy& joint = area->copies[place];
    const std::uint32_t generation = joint.begin();
    ask(Join{static_cast<std::uint32_t>(place), generation, static_cast<std::uint64_t>(getpid()),
             reinterpret_cast<std::uint64_t>(&area->token)});
    Status status = Status::ok;
    JointCopy::Piece piece;
    std::uint64_t mine = 0;
    while (joint.take(generation, bytes, piece)) {
        if (status == Status::ok) status = copy(piece.offset, piece.bytes);
        mine += piece.bytes;
    }
    const bool there = wait(joint, bytes - mine);
    const bool again = joint.failed();
    used_.fetch_and(~(1U << place), std::memory_order_release);
    if (!there) return Status::peer_lost;
    // The program may not be able to reach this process. Then this process does all of it.
    return status == Status::ok && again ? copy(0, bytes) : status;
}

}  // namespace offpath::target
