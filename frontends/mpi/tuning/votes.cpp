#include "votes.h"

#include <algorithm>

#include "../backoff.h"
#include "../operations.h"
#include "../p2p/state.h"

namespace offpath::mpi {
namespace {

template <typename Over>
void wait_until(Over&& over) {
    for (Backoff backoff; !over(); backoff.pause()) {
        poll();
        p2p::poll();
    }
}

}  // namespace

bool Votes::Vote::is_over() {
    if (request == MPI_REQUEST_NULL) return true;
    int done = 0;
    if (PMPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS) return done != 0;
    request = MPI_REQUEST_NULL;
    all = 0;
    return true;
}

// They end in their order.
void Votes::take_results() {
    while (!votes_.empty() && votes_.front()->is_over()) {
        knows_ = knows_ || votes_.front()->all > 0;
        votes_.pop_front();
    }
}

bool Votes::over() {
    return std::all_of(votes_.begin(), votes_.end(), [](const auto& vote) { return vote->is_over(); });
}

void Votes::settle() {
    wait_until([&] { return over(); });
}

bool Votes::stays(bool met_loss, MPI_Comm comm, int ranks) {
    if (++calls_ % calls_between != 0) return true;
    if (!votes_.empty() && votes_.back()->mine != 0) {
        Vote& last = *votes_.back();
        wait_until([&] { return last.is_over(); });
        if (last.all == ranks) return false;
    }
    take_results();
    knows_ = knows_ || met_loss;
    Vote& vote = *votes_.emplace_back(std::make_unique<Vote>());
    vote.mine = knows_ ? 1 : 0;
    if (PMPI_Iallreduce(&vote.mine, &vote.all, 1, MPI_INT, MPI_SUM, comm, &vote.request) != MPI_SUCCESS)
        vote.request = MPI_REQUEST_NULL;
    return true;
}

}  // namespace offpath::mpi
