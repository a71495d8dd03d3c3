#include "one_step_reduction.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "datatypes/reductions.h"
#include "leaving_messages.h"
#include "offloaded_requests.h"

namespace offpath::mpi {
namespace {

using Shape = DevicePart::Shape;

// A piece is at least this large, and there are at most so many.
constexpr std::size_t least_piece_bytes = std::size_t{1} << 20;
constexpr std::size_t most_pieces = 64;
constexpr std::size_t most_piece_bytes = std::size_t{1} << 30;  // the host's MPI counts bytes in an int

// All ranks come to the same.
std::size_t piece_bytes_of(std::size_t bytes, std::size_t extent) {
    const std::size_t wanted =
        std::min(std::max(least_piece_bytes, bytes / most_pieces + extent), most_piece_bytes);
    return std::max<std::size_t>(1, wanted / std::max<std::size_t>(1, extent)) * extent;
}

}  // namespace

OneStepReduction::OneStepReduction(const OffloadedRequest& operation, SmallLane lane, const void* operand)
    : operation_(operation),
      rank_(operation.team->rank),
      ranks_(operation.team->size),
      lane_(lane),
      operand_(static_cast<const std::byte*>(operand)),
      extent_(bytes_in_memory(operation.part.type, 1)),
      bytes_(operation.part.size * extent_),
      piece_bytes_(piece_bytes_of(bytes_, extent_)) {
    if (bytes_ == 0) return;
    for (int peer = 0; peer < ranks_; ++peer)
        if (needs_operand(rank_, peer)) last_ = peer;
    if (last_ >= 0) sum_.resize(std::min(piece_bytes_, bytes_));
    if (last_ >= 1) next_.resize(sum_.size());
    send_operand();
    if (last_ >= 0 && !failed_) obtain();
}

OneStepReduction::~OneStepReduction() {
    if (receive_ != MPI_REQUEST_NULL) {
        PMPI_Cancel(&receive_);
        PMPI_Wait(&receive_, MPI_STATUS_IGNORE);
    }
    // A start that has failed.
    if (sent_ == nullptr) return;
    operation_.team->small_messages.never_reuse_tag();
    let_leave(std::move(sent_));
}

// Whether the result of `rank` needs the operand of rank `of`.
bool OneStepReduction::needs_operand(int rank, int of) const {
    switch (operation_.part.shape) {
        case Shape::reduce:
            return rank == operation_.part.root;
        case Shape::scan:
            return of <= rank;
        case Shape::exscan:
            return of < rank;
        default:
            return true;
    }
}

// To a rank, the pieces leave in the order in which it receives them.
void OneStepReduction::send_operand() {
    std::vector<int> to;
    for (int peer = 0; peer < ranks_; ++peer)
        if (peer != rank_ && needs_operand(peer, rank_)) to.push_back(peer);
    if (to.empty()) return;
    sent_ = std::make_unique<LeavingMessages>();
    sent_->team = operation_.team->id;
    sent_->lane = lane_.first_tag();
    sent_->bytes.assign(operand_, operand_ + bytes_);
    sent_->requests.reserve(((bytes_ - 1) / piece_bytes_ + 1) * to.size());
    operand_ = sent_->bytes.data();
    for (std::size_t begin = 0; begin < bytes_; begin += piece_bytes_)
        for (const int peer : to) {
            if (failed_) return;
            const auto size = static_cast<int>(std::min(piece_bytes_, bytes_ - begin));
            failed_ = operation_.team->small_messages.send(operand_ + begin, size, MPI_BYTE, peer, lane_,
                                                           &sent_->requests.emplace_back(MPI_REQUEST_NULL)) !=
                      MPI_SUCCESS;
        }
}

void OneStepReduction::obtain() {
    now_bytes_ = std::min(piece_bytes_, bytes_ - begin_);
    std::byte* const place = from_ == 0 ? sum_.data() : next_.data();
    if (from_ == rank_)
        std::memcpy(place, operand_ + begin_, now_bytes_);
    else
        failed_ = operation_.team->small_messages.receive(place, static_cast<int>(now_bytes_), MPI_BYTE,
                                                          from_, lane_, &receive_) != MPI_SUCCESS;
}

void OneStepReduction::take() {
    const DevicePart& part = operation_.part;
    if (from_ > 0) {
        failed_ = PMPI_Reduce_local(sum_.data(), next_.data(), static_cast<int>(now_bytes_ / extent_),
                                    part.type, part.reduction) != MPI_SUCCESS;
        std::swap(sum_, next_);
    }
    if (from_++ < last_) return;
    std::memcpy(static_cast<std::byte*>(part.recv) + begin_, sum_.data(), now_bytes_);
    begin_ += now_bytes_;
    from_ = 0;
}

offpath_status_t OneStepReduction::progress(bool& moved) {
    while (last_ >= 0 && begin_ < bytes_ && !failed_) {
        if (receive_ != MPI_REQUEST_NULL) {
            int done = 0;
            failed_ = PMPI_Test(&receive_, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS;
            if (failed_) break;
            if (done == 0) return OFFPATH_IN_PROGRESS;
            moved = true;
        }
        take();
        if (begin_ < bytes_ && !failed_) obtain();
    }
    if (failed_) return OFFPATH_ERR_PEER_LOST;
    if (sent_ == nullptr) return OFFPATH_OK;
    if (must_follow_others(*sent_)) return OFFPATH_IN_PROGRESS;
    let_leave(std::move(sent_));
    return OFFPATH_OK;
}

}  // namespace offpath::mpi
