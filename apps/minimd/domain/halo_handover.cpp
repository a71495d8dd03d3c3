// How a halo continues by MPI when its carrier is lost.
//
// Ranks lose the carrier at different moves, so some have finished a move that others have not. No rank is
// far ahead: it finishes a move only when the ranks that send to it have started that move, and so have
// finished the one before. Moves go out and home in turn. So of two ranks with traffic, one can have finished
// at most one move that the other lacks: its last move, whose `out` still exists.
#include <cstdio>

#include "minimd/domain/halo.h"
#include "minimd/domain/migration.h"
#include "minimd/domain/patience.h"

namespace minimd {

template <typename Real>
void Halo<Real>::start_agreement(bool lost) {
    own_word_ = {finished_, lost ? 1 : 0};
    words_.resize(static_cast<std::size_t>(decomposition_.ranks()));
    calls_.in([&] {
        MPI_Iallgather(&own_word_, 2, MPI_INT64_T, words_.data(), 2, MPI_INT64_T, decomposition_.comm(),
                       &agreement_);
    });
}

template <typename Real>
std::vector<std::int64_t> Halo<Real>::finish_agreement() {
    calls_.in([&] {
        wait_patiently([&] {
            int there = 0;
            MPI_Test(&agreement_, &there, MPI_STATUS_IGNORE);
            return there != 0;
        });
    });
    std::vector<std::int64_t> finished;
    int losers = 0;
    for (const Word& word : words_) {
        finished.push_back(word.finished);
        losers += word.lost != 0 ? 1 : 0;
    }
    if (losers == 0) return {};
    if (decomposition_.rank() == 0)
        std::fprintf(stderr, "minimd: the device is lost for %d of %d ranks: ghosts go by MPI from now on\n",
                     losers, decomposition_.ranks());
    carrier_ = nullptr;
    planned_ = false;
    return finished;
}

template <typename Real>
void Halo<Real>::send_again(const std::vector<std::int64_t>& finished, std::vector<MPI_Request>& requests) {
    std::size_t before = 0;
    for (std::size_t p = 0; p < plan_.peers.size(); ++p) {
        const GhostPeer& peer = plan_.peers[p];
        const std::int64_t behind = finished_ - finished[static_cast<std::size_t>(peer.rank)];
        const std::size_t numbers = last_.out != nullptr ? numbers_out(peer, last_.move) : 0;
        if (behind > 2 || (behind == 2 && numbers_out(peer, before_last_.move) > 0))
            throw SimulationError("the device was lost when ranks were too far apart to go on without it");
        if (behind > 0 && last_.out != nullptr) {
            requests.emplace_back();
            post_send(p, last_.move, tag_of(last_.move), last_.out + before, requests.back());
        }
        before += numbers;
    }
}

template <typename Real>
void Halo<Real>::start_settle() {
    if (planned_ && current_.out == nullptr && carrier_->can_be_lost()) start_agreement(false);
}

template <typename Real>
void Halo<Real>::finish_settle() {
    if (agreement_ == MPI_REQUEST_NULL) return;
    const std::vector<std::int64_t> finished = finish_agreement();
    if (finished.empty()) return;
    std::vector<MPI_Request> requests;
    send_again(finished, requests);
    wait(requests);
}

template <typename Real>
void Halo<Real>::hand_over() {
    start_agreement(true);
    const std::vector<std::int64_t> finished = finish_agreement();
    const Move move = current_.move;
    std::vector<MPI_Request> requests;
    for (std::size_t p = 0; p < plan_.peers.size(); ++p) {
        requests.emplace_back();
        post_receive(p, move, tag_of(move), requests.back());
    }
    send_again(finished, requests);
    const Real* out = current_.out;
    for (std::size_t p = 0; p < plan_.peers.size(); ++p) {
        const GhostPeer& peer = plan_.peers[p];
        if (finished[static_cast<std::size_t>(peer.rank)] <= finished_) {
            requests.emplace_back();
            post_send(p, move, tag_of(move), out, requests.back());
        }
        out += numbers_out(peer, move);
    }
    wait(requests);
}

template class Halo<float>;
template class Halo<double>;

}  // namespace minimd
