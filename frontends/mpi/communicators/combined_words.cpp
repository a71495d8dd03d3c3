#include "combined_words.h"

#include <algorithm>
#include <utility>

namespace offpath::mpi {
namespace {

constexpr int children_of_each = 16;

int parent_of(int rank) {
    return (rank - 1) / children_of_each;
}

int depth_of(int rank) {
    int depth = 0;
    for (; rank > 0; rank = parent_of(rank))
        ++depth;
    return depth;
}

}  // namespace

CombinedWords::CombinedWords(Team& team, How how, std::vector<std::uint64_t> mine, SmallLane lane)
    : team_(team),
      how_(how),
      lane_(lane),
      first_child_(std::min(children_of_each * team.rank + 1, team.size)),
      end_of_children_(std::min(first_child_ + children_of_each, team.size)),
      own_depth_(depth_of(team.rank)),
      tree_depth_(depth_of(team.size - 1)),
      words_(std::move(mine)) {
    words_.push_back(good);
    if (!lane_.usable()) {
        words_.back() = failed;
        next_step_ = 2 * tree_depth_ + 1;
        return;
    }
    post_receives();
    step();
}

CombinedWords::~CombinedWords() {
    if (ended()) return;
    team_.small_messages.never_reuse_tag();
    for (Incoming& one : incoming_) {
        if (one.request != MPI_REQUEST_NULL) PMPI_Cancel(&one.request);
        PMPI_Wait(&one.request, MPI_STATUS_IGNORE);
    }
    for (MPI_Request& request : outgoing_)
        if (request != MPI_REQUEST_NULL) PMPI_Request_free(&request);
}

void CombinedWords::note(int error) {
    if (error == MPI_SUCCESS) return;
    error_ = error;
    team_.small_messages.never_reuse_tag();
}

void CombinedWords::receive_from(int rank) {
    Incoming& one = incoming_.emplace_back();
    one.words.resize(words_.size());
    one.words.back() = unknown;
    one.request = MPI_REQUEST_NULL;
    note(team_.small_messages.receive(one.words.data(), static_cast<int>(one.words.size()), MPI_UINT64_T,
                                      rank, lane_, &one.request));
}

// Each step posts the receives of the next one, so that operations that begin in between cannot take what is
// meant for this one.
void CombinedWords::post_receives() {
    incoming_.clear();
    incoming_.reserve(static_cast<std::size_t>(end_of_children_ - first_child_) + 1);
    if (goes_up())
        for (int child = first_child_; child < end_of_children_; ++child)
            receive_from(child);
    if (comes_down() && own_depth_ > 0) receive_from(parent_of(team_.rank));
}

void CombinedWords::send_to(int rank, const std::vector<std::uint64_t>& words) {
    MPI_Request request = MPI_REQUEST_NULL;
    note(team_.small_messages.send(words.data(), static_cast<int>(words.size()), MPI_UINT64_T, rank, lane_,
                                   &request));
    outgoing_.push_back(request);
}

void CombinedWords::combine(const Incoming& from_child) {
    for (std::size_t i = 0; i + 1 < words_.size(); ++i) {
        const std::uint64_t theirs = from_child.words[i];
        words_[i] = how_ == How::sum ? words_[i] + theirs : std::max(words_[i], theirs);
    }
    if (from_child.words.back() != good) words_.back() = failed;
}

void CombinedWords::conclude_step() {
    if (goes_up()) {
        for (const Incoming& one : incoming_)
            combine(one);
        // From here on, an error on the way up is the whole team's.
        if (std::exchange(error_, MPI_SUCCESS) != MPI_SUCCESS) words_.back() = failed;
        if (own_depth_ > 0) {
            up_ = words_;
            send_to(parent_of(team_.rank), up_);
        }
    }
    if (comes_down()) {
        if (own_depth_ > 0) {
            words_ = std::move(incoming_.front().words);
            if (error_ == MPI_SUCCESS && words_.back() == unknown) note(MPI_ERR_OTHER);
            if (error_ != MPI_SUCCESS) words_.back() = unknown;
        }
        const int known = error_;
        for (int child = first_child_; child < end_of_children_; ++child)
            send_to(child, words_);
        error_ = known;  // a child that gets nothing has the error
    }
    ++next_step_;
    if (!ended()) return post_receives();
    for (MPI_Request& request : outgoing_)
        PMPI_Wait(&request, MPI_STATUS_IGNORE);
}

bool CombinedWords::step() {
    if (ended()) return true;
    for (Incoming& one : incoming_)
        note(PMPI_Wait(&one.request, MPI_STATUS_IGNORE));
    conclude_step();
    return ended();
}

bool CombinedWords::advance() {
    while (!ended()) {
        for (Incoming& one : incoming_) {
            int flag = 0;
            const int error = PMPI_Test(&one.request, &flag, MPI_STATUS_IGNORE);
            note(error);
            if (error == MPI_SUCCESS && flag == 0) return false;
        }
        conclude_step();
    }
    return true;
}

std::optional<std::span<const std::uint64_t>> CombinedWords::result() const {
    if (error_ != MPI_SUCCESS) throw NoAgreement{error_};
    if (words_.back() != good) return std::nullopt;
    return std::span(words_).first(words_.size() - 1);
}

std::vector<std::uint64_t> combine_now(Team& team, CombinedWords::How how, std::vector<std::uint64_t> mine) {
    CombinedWords all(team, how, std::move(mine));
    while (!all.step()) {
    }
    const auto result = all.result();
    return result ? std::vector<std::uint64_t>(result->begin(), result->end()) : std::vector<std::uint64_t>{};
}

}  // namespace offpath::mpi
