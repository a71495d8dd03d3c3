#include "second_runs.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>

#include "after_loss.h"
#include "base/clock.h"
#include "base/confirmed_bytes.h"
#include "datatypes/reductions.h"
#include "given_results.h"
#include "offloaded_requests.h"
#include "one_step_reduction.h"

namespace offpath::mpi {
namespace {

using PartShape = DevicePart::Shape;

constexpr std::size_t largest_message = std::size_t{1} << 30;  // the host's MPI counts bytes in an int

std::byte* byte_at(const void* base, std::size_t offset) {
    return static_cast<std::byte*>(const_cast<void*>(base)) + offset;
}

SmallLane lane_of(const OffloadedRequest& operation) {
    return operation.persistent ? operation.lane : SmallLane::of_second_runs();
}

// The parts of a reduction that scatters are those of its ranks in any case.
bool has_one_step(const OffloadedRequest& operation) {
    const DevicePart& part = operation.part;
    return operation.on_host && part.reduces() && part.shape != PartShape::reduce_scatter &&
           part.shape != PartShape::reduce_scatter_block;
}

const void* operands_to_send(const OffloadedRequest& operation) {
    const DevicePart& part = operation.part;
    if (part.send != nullptr) return part.send;
    return operation.operands.empty() ? part.recv : operation.operands.data();
}

// Of a reduction in place.
std::size_t operand_bytes(const OffloadedRequest& operation) {
    const DevicePart& part = operation.part;
    std::size_t elements = part.size;
    if (part.shape == PartShape::reduce_scatter_block)
        elements *= static_cast<std::size_t>(operation.team->size);
    if (part.shape == PartShape::reduce_scatter)
        elements = std::accumulate(operation.recv_bytes.begin(), operation.recv_bytes.end(), std::size_t{0});
    return bytes_in_memory(part.type, elements);
}

}  // namespace

bool can_run_again(const OffloadedRequest& operation) {
    const DevicePart& part = operation.part;
    if (part.shape == PartShape::none || !lane_of(operation).usable()) return false;
    return has_operands(operation) || operation.fresh;
}

void keep_operands(OffloadedRequest& operation) try {
    const DevicePart& part = operation.part;
    if (!part.reduces() || part.send != nullptr || operation.number == 0) return;
    const std::size_t bytes = operand_bytes(operation);
    if (bytes > most_kept_operand_bytes) return;
    const auto* const operands = static_cast<const std::byte*>(part.recv);
    operation.operands.assign(operands, operands + bytes);
} catch (const std::bad_alloc&) {
    operation.operands.clear();
}

bool has_operands(const OffloadedRequest& operation) {
    return !operation.part.reduces() || operation.part.send != nullptr || !operation.operands.empty();
}

SecondRun::SecondRun(const OffloadedRequest& operation)
    : operation_(operation),
      rank_(operation.team->rank),
      ranks_(operation.team->size),
      lane_(lane_of(operation)),
      moved_ns_(now_ns()) {
    if (is_given()) return;
    if (has_one_step(operation)) {
        one_step_ = std::make_unique<OneStepReduction>(operation, lane_, operands_to_send(operation));
    } else if (operation.part.reduces()) {
        exchange_operands();
    } else {
        start();
    }
}

SecondRun::~SecondRun() {
    for (MPI_Request& receive : receives_) {
        if (receive == MPI_REQUEST_NULL) continue;
        PMPI_Cancel(&receive);
        PMPI_Wait(&receive, MPI_STATUS_IGNORE);
    }
    bool pending = false;
    for (MPI_Request& send : sends_) {
        pending = pending || send != MPI_REQUEST_NULL;
        if (send != MPI_REQUEST_NULL) PMPI_Request_free(&send);
    }
    if (pending) operation_.team->small_messages.never_reuse_tag();
}

offpath_status_t SecondRun::progress() {
    if (failed_) return OFFPATH_ERR_PEER_LOST;
    if (one_step_ != nullptr) {
        bool moved = false;
        const offpath_status_t status = one_step_->progress(moved);
        if (moved) moved_ns_ = now_ns();
        return status;
    }
    bool all_done = true;
    for (std::vector<MPI_Request>* messages : {&receives_, &sends_}) {
        for (MPI_Request& message : *messages) {
            if (message == MPI_REQUEST_NULL) continue;
            int done = 0;
            if (PMPI_Test(&message, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
                failed_ = true;
                return OFFPATH_ERR_PEER_LOST;
            }
            if (done != 0) moved_ns_ = now_ns();
            all_done = all_done && done != 0;
        }
    }
    if (!all_done) return OFFPATH_IN_PROGRESS;
    receives_.clear();
    sends_.clear();
    if (!given_.empty()) {
        failed_ = !take_given(operation_, given_);
        return failed_ ? OFFPATH_ERR_PEER_LOST : OFFPATH_OK;
    }
    if (!operation_.part.reduces() || spread_) return OFFPATH_OK;
    spread_ = true;
    combine_and_spread();
    return progress();
}

bool SecondRun::is_given() {
    const int giver = giver_of(operation_);
    if (giver < 0) return false;
    given_.resize(given_bytes(operation_));
    receives_.push_back(MPI_REQUEST_NULL);
    failed_ = operation_.team->small_messages.receive(given_.data(), static_cast<int>(given_.size()),
                                                      MPI_BYTE, giver, SmallLane::of_given_results(),
                                                      &receives_.back()) != MPI_SUCCESS;
    return true;
}

bool SecondRun::is_over_at(int peer, std::size_t arriving_bytes) {
    const int world_rank = operation_.team->small_messages.peers()[static_cast<std::size_t>(peer)].world_rank;
    if (peer == rank_ || !traits(operation_.op).is_direct() ||
        !operation_.departure->has_result(operation_.number, world_rank))
        return false;
    failed_ = failed_ || (arriving_bytes > 0 && arriving_bytes < confirmed_bytes);
    return true;
}

// A message without bytes is not sent: both ends know its size.
void SecondRun::send(int to, const void* bytes, std::size_t count) {
    for (std::size_t begin = 0; begin < count && !failed_; begin += largest_message) {
        const int size = static_cast<int>(std::min(count - begin, largest_message));
        sends_.push_back(MPI_REQUEST_NULL);
        failed_ = operation_.team->small_messages.send(byte_at(bytes, begin), size, MPI_BYTE, to, lane_,
                                                       &sends_.back()) != MPI_SUCCESS;
    }
}

void SecondRun::receive(int from, void* bytes, std::size_t count) {
    for (std::size_t begin = 0; begin < count && !failed_; begin += largest_message) {
        const int size = static_cast<int>(std::min(count - begin, largest_message));
        receives_.push_back(MPI_REQUEST_NULL);
        failed_ = operation_.team->small_messages.receive(byte_at(bytes, begin), size, MPI_BYTE, from, lane_,
                                                          &receives_.back()) != MPI_SUCCESS;
    }
}

void SecondRun::start() {
    const DevicePart& part = operation_.part;
    const OffloadedRequest& op = operation_;
    const auto to_and_from = [&](int peer, const void* out, std::size_t out_bytes, void* in,
                                 std::size_t in_bytes) {
        if (peer == rank_) {
            if (out != in && in_bytes > 0) std::memcpy(in, out, std::min(in_bytes, out_bytes));
            return;
        }
        if (is_over_at(peer, in_bytes)) return;
        receive(peer, in, in_bytes);
        send(peer, out, out_bytes);
    };
    const bool is_root = rank_ == part.root;
    switch (part.shape) {
        case PartShape::barrier:
            operands_.resize(static_cast<std::size_t>(ranks_));
            for (int peer = 0; peer < ranks_; ++peer)
                to_and_from(peer, &operands_[static_cast<std::size_t>(rank_)], 1,
                            &operands_[static_cast<std::size_t>(peer)], 1);
            return;
        case PartShape::alltoall:
            for (int peer = 0; peer < ranks_; ++peer) {
                const std::size_t offset = static_cast<std::size_t>(peer) * part.size;
                to_and_from(peer, byte_at(part.send, offset), part.size, byte_at(part.recv, offset),
                            part.size);
            }
            return;
        case PartShape::pairs:
            for (int peer = 0; peer < ranks_; ++peer) {
                const auto i = static_cast<std::size_t>(peer);
                to_and_from(peer, byte_at(part.send, op.send_offsets[i]), op.send_bytes[i],
                            byte_at(part.recv, op.recv_offsets[i]), op.recv_bytes[i]);
            }
            return;
        case PartShape::neighbors:
            // Blocks between the same two ranks are matched in their order, also those of a rank with itself.
            for (std::size_t i = 0; i < op.recv_peers.size(); ++i)
                if (!is_over_at(op.recv_peers[i], op.recv_bytes[i]))
                    receive(op.recv_peers[i], byte_at(part.recv, op.recv_offsets[i]), op.recv_bytes[i]);
            for (std::size_t i = 0; i < op.send_peers.size(); ++i)
                if (!is_over_at(op.send_peers[i], 0))
                    send(op.send_peers[i], byte_at(part.send, op.send_offsets[i]), op.send_bytes[i]);
            return;
        case PartShape::allgather:
        case PartShape::allgatherv: {
            const bool equal = part.shape == PartShape::allgather;
            const auto size = [&](int peer) {
                return equal ? part.size : op.recv_bytes[static_cast<std::size_t>(peer)];
            };
            const auto place = [&](int peer) {
                const auto i = static_cast<std::size_t>(peer);
                return byte_at(part.recv, equal ? i * part.size : op.recv_offsets[i]);
            };
            const void* own = part.send != nullptr ? part.send : place(rank_);
            for (int peer = 0; peer < ranks_; ++peer)
                to_and_from(peer, own, size(rank_), place(peer), size(peer));
            return;
        }
        case PartShape::bcast:
            if (!is_root) return receive(part.root, part.recv, part.size);
            for (int peer = 0; peer < ranks_; ++peer)
                if (peer != rank_) send(peer, part.send, part.size);
            return;
        default:
            return start_rooted();
    }
}

// One side is the root's block for each rank, the other one a rank's own block. In place, the root's own
// block is where it belongs.
void SecondRun::start_rooted() {
    const DevicePart& part = operation_.part;
    const OffloadedRequest& op = operation_;
    const bool gathers = part.shape == PartShape::gather || part.shape == PartShape::gatherv;
    const bool equal = part.shape == PartShape::gather || part.shape == PartShape::scatter;
    const std::vector<std::size_t>& sizes = gathers ? op.recv_bytes : op.send_bytes;
    const std::vector<std::size_t>& offsets = gathers ? op.recv_offsets : op.send_offsets;
    if (rank_ != part.root) {
        if (is_over_at(part.root, gathers ? 0 : equal ? part.size : op.recv_bytes[0])) return;
        if (gathers) return send(part.root, part.send, equal ? part.size : op.send_bytes[0]);
        return receive(part.root, part.recv, equal ? part.size : op.recv_bytes[0]);
    }
    const void* all = gathers ? part.recv : part.send;
    const void* one = gathers ? part.send : part.recv;
    for (int peer = 0; peer < ranks_; ++peer) {
        const auto i = static_cast<std::size_t>(peer);
        const std::size_t bytes = equal ? part.size : sizes[i];
        std::byte* const block = byte_at(all, equal ? i * part.size : offsets[i]);
        if (is_over_at(peer, gathers ? bytes : 0)) continue;
        if (peer != rank_) {
            if (gathers)
                receive(peer, block, bytes);
            else
                send(peer, block, bytes);
        } else if (one != nullptr && bytes > 0) {
            if (gathers)
                std::memcpy(block, one, bytes);
            else
                std::memcpy(byte_at(one, 0), block, bytes);
        }
    }
}

// The first element of the rank's part.
std::size_t SecondRun::first_element(int rank) const {
    const DevicePart& part = operation_.part;
    const auto i = static_cast<std::size_t>(rank);
    if (part.shape == PartShape::reduce_scatter_block) return i * part.size;
    if (part.shape != PartShape::reduce_scatter)
        return part.size / static_cast<std::size_t>(ranks_) * i +
               std::min(i, part.size % static_cast<std::size_t>(ranks_));
    std::size_t first = 0;
    for (std::size_t before = 0; before < i; ++before)
        first += operation_.recv_bytes[before];  // elements, here
    return first;
}

void SecondRun::exchange_operands() {
    const DevicePart& part = operation_.part;
    extent_ = bytes_in_memory(part.type, 1);
    const auto bytes_of = [&](int rank) { return (first_element(rank + 1) - first_element(rank)) * extent_; };
    part_bytes_ = bytes_of(rank_);
    operands_.resize(part_bytes_ * static_cast<std::size_t>(ranks_));
    for (int peer = 0; peer < ranks_; ++peer)
        if (peer != rank_) receive(peer, operand_of(peer), part_bytes_);
    for (int peer = 0; peer < ranks_; ++peer) {
        const std::byte* operand = byte_at(operands_to_send(operation_), first_element(peer) * extent_);
        if (peer != rank_) {
            send(peer, operand, bytes_of(peer));
        } else if (part_bytes_ > 0) {
            std::memcpy(operand_of(peer), operand, part_bytes_);
        }
    }
}

// Afterwards the operand of a rank is combined with those of all ranks before it, from the first one on.
void SecondRun::combine(int first, int last) {
    const DevicePart& part = operation_.part;
    const std::size_t at_once = std::max<std::size_t>(1, largest_message / std::max<std::size_t>(1, extent_));
    for (int rank = first + 1; rank <= last; ++rank)
        for (std::size_t begin = 0; begin < part_bytes_; begin += at_once * extent_) {
            const auto elements = static_cast<int>(std::min(at_once, (part_bytes_ - begin) / extent_));
            failed_ = failed_ || PMPI_Reduce_local(operand_of(rank - 1) + begin, operand_of(rank) + begin,
                                                   elements, part.type, part.reduction) != MPI_SUCCESS;
        }
}

// Whether this rank has a result that all operands, or those of the ranks before it, give.
bool SecondRun::has_result() const {
    switch (operation_.part.shape) {
        case PartShape::reduce:
            return rank_ == operation_.part.root;
        case PartShape::exscan:
            return rank_ > 0;
        case PartShape::reduce_scatter:
        case PartShape::reduce_scatter_block:
            return false;  // it has combined it itself
        default:
            return true;
    }
}

void SecondRun::combine_and_spread() {
    const DevicePart& part = operation_.part;
    combine(0, ranks_ - 1);
    const auto result_for = [&](int rank) -> const std::byte* {
        switch (part.shape) {
            case PartShape::reduce:
                return rank == part.root ? operand_of(ranks_ - 1) : nullptr;
            case PartShape::reduce_scatter:
            case PartShape::reduce_scatter_block:
                return rank == rank_ ? operand_of(ranks_ - 1) : nullptr;
            case PartShape::scan:
                return operand_of(rank);
            case PartShape::exscan:
                return rank > 0 ? operand_of(rank - 1) : nullptr;
            default:
                return operand_of(ranks_ - 1);
        }
    };
    const bool scatters =
        part.shape == PartShape::reduce_scatter || part.shape == PartShape::reduce_scatter_block;
    // A rank without a part of the operands may have a result, too.
    const bool arrives = has_result();
    for (int peer = 0; peer < ranks_ && arrives; ++peer) {
        const std::size_t first = first_element(peer) * extent_;
        const std::size_t bytes = first_element(peer + 1) * extent_ - first;
        if (peer != rank_) receive(peer, byte_at(part.recv, first), bytes);
    }
    for (int peer = 0; peer < ranks_; ++peer) {
        const std::byte* result = result_for(peer);
        if (result == nullptr || part_bytes_ == 0) continue;
        if (peer != rank_) {
            send(peer, result, part_bytes_);
        } else {
            std::memcpy(byte_at(part.recv, scatters ? 0 : first_element(rank_) * extent_), result,
                        part_bytes_);
        }
    }
}

}  // namespace offpath::mpi
