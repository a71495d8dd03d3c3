// RingReduction: the ring's reduce-scatter, shared by allreduce, reduce and reduce_scatter. It works in
// rounds. In a round one segment of every block travels once around the ring and collects the operands on its
// way. Rank r ends with the segment of block r.
//
// A segment is received into scratch, this rank's operand is folded in, and it is sent on from there: host
// memory is read, never written. Several rounds are in flight, so that the reduction of one segment overlaps
// with the arrival of the next. In a round a rank has two buffers: one is filled while the other is sent.
//
// Invariant: rounds and steps only wait for earlier ones, so there is no cyclic wait.
#pragma once

#include "collectives/collectives.h"
#include "collectives/ops_in_flight.h"
#include "collectives/patterns/ring.h"
#include "collectives/patterns/segments.h"
#include "collectives/scratch.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace offpath::collectives {

class RingReduction {
  public:
    // Blocks are indexed by rank, in the buffer `own` with this rank's operands. `steps`: the number of steps
    // of a round, from which tags are made. Steps after the ring's own are the caller's.
    RingReduction(schedule::Builder& builder, TeamShape team, schedule::BufferRef own,
                  std::span<const std::uint64_t> bytes, std::span<const std::uint64_t> offsets, Reducing what,
                  std::uint64_t segment_bytes, std::uint64_t steps)
        : builder_(builder),
          ring_{team.rank, team.size},
          own_(own),
          bytes_(bytes),
          offsets_(offsets),
          what_(what),
          steps_(steps),
          segment_bytes_(Segments{std::ranges::max(bytes), segment_bytes}.step()),
          rounds_(
              segments(static_cast<std::uint32_t>(std::ranges::max_element(bytes) - bytes.begin())).count()),
          scratch_(builder, 2 * std::min<std::uint64_t>(rounds_, pipeline_sends), segment_bytes_),
          first_sends_(builder, pipeline_sends),
          readers_(team.size) {}

    std::uint64_t rounds() const { return rounds_; }
    const Ring& ring() const { return ring_; }
    Scratch& scratch() { return scratch_; }
    std::uint64_t tag(std::uint64_t round, std::uint64_t step) const { return round * steps_ + step; }
    // The buffer that the round fills in this step.
    std::uint64_t buffer(std::uint64_t round, std::uint64_t step) const {
        return 2 * (round % pipeline_sends) + step % 2;
    }
    bool has(std::uint32_t block, std::uint64_t round) const { return round < segments(block).count(); }
    std::uint64_t size(std::uint32_t block, std::uint64_t round) const { return segments(block).size(round); }
    // The segment's offset in its block.
    std::uint64_t offset(std::uint64_t round) const { return round * segment_bytes_; }
    // After this op, this round does not read the rank's own operand in that block any more.
    std::optional<schedule::OpId> reader(std::uint32_t block) const { return readers_[block]; }

    // Returns the op after which the reduced segment of this rank's block is in buffer(round, ring().steps()
    // - 1). Empty if the block has no segment in this round.
    std::optional<schedule::OpId> reduce_scatter(std::uint64_t round) {
        std::fill(readers_.begin(), readers_.end(), std::nullopt);
        std::optional<schedule::OpId> reduced;
        for (std::uint32_t step = 0; step < ring_.steps(); ++step) {
            const std::uint32_t out = ring_.sent_block(step + 1), in = ring_.received_block(step + 1);
            std::optional<schedule::OpId> next;
            if (has(in, round)) {
                const std::uint64_t into = buffer(round, step);
                const schedule::OpId recv =
                    builder_.recv(ring_.previous(), tag(round, step), scratch_.at(into), size(in, round));
                scratch_.fill(into, recv);
                next = builder_.reduce(what_.type, what_.reduction, operand(in, round), scratch_.at(into),
                                       size(in, round));
                scratch_.use(into, recv, *next);
                readers_[in] = next;
            }
            if (has(out, round)) send(out, round, step, reduced);
            reduced = next;
        }
        return reduced;
    }

  private:
    Segments segments(std::uint32_t block) const { return {bytes_[block], segment_bytes_}; }
    schedule::BufferRef operand(std::uint32_t block, std::uint64_t round) const {
        return {own_.slot, own_.offset + offsets_[block] + offset(round)};
    }
    void send(std::uint32_t block, std::uint64_t round, std::uint32_t step,
              std::optional<schedule::OpId> reduced) {
        if (step > 0) {
            const std::uint64_t from = buffer(round, step - 1);
            scratch_.use(
                from, *reduced,
                builder_.send(ring_.next(), tag(round, step), scratch_.at(from), size(block, round)));
            return;
        }
        readers_[block] =
            builder_.send(ring_.next(), tag(round, step), operand(block, round), size(block, round));
        first_sends_.add(*readers_[block]);
    }

    schedule::Builder& builder_;
    Ring ring_;
    schedule::BufferRef own_;
    std::span<const std::uint64_t> bytes_, offsets_;
    Reducing what_;
    std::uint64_t steps_, segment_bytes_, rounds_;
    Scratch scratch_;
    OpsInFlight first_sends_;
    std::vector<std::optional<schedule::OpId>> readers_;
};

}  // namespace offpath::collectives
