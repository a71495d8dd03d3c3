// Steps: collectives, each with any of its algorithms.
#include "collectives/collectives.h"

#include "play.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace offpath::campaign {
namespace {

using collectives::TeamShape;
using schedule::Schedule;

// What one rank passes and must find: its buffers in slot order, and which of them the collective writes.
struct Part {
    Schedule schedule;
    std::vector<std::span<std::byte>> slots;
    std::optional<std::size_t> result;  // of slots
    std::vector<std::byte> wanted;      // in it
};

// Blocks of equal size, one a rank, one after the other.
struct Blocks {
    Blocks(std::uint32_t count, std::uint64_t bytes) : sizes(count, bytes), offsets(count) {
        std::exclusive_scan(sizes.begin(), sizes.end(), offsets.begin(), std::uint64_t{0});
    }
    std::vector<std::uint64_t> sizes, offsets;
};

class Maker {
  public:
    explicit Maker(Play& play) : play_(play), random_(play.random()), n_(play.stage().ranks()) {
        for (std::uint32_t rank = 0; rank < n_; ++rank)
            sources_.push_back(play.next_number());
        root_ = play.any_rank();
        bytes_ = std::max<std::uint64_t>(1, play.any_size());
    }

    std::string make(std::vector<Part>& parts) {
        parts.resize(n_);
        switch (random_() % 9) {
            case 0:
                return alltoall(parts);
            case 1:
                return allgather(parts);
            case 2:
                return bcast(parts);
            case 3:
                return reduce_to_all(parts);
            case 4:
                return reduce_to_root(parts);
            case 5:
                return scan(parts);
            case 6:
                return gather(parts);
            case 7:
                return scatter(parts);
            default:
                for (std::uint32_t rank = 0; rank < n_; ++rank)
                    parts[rank].schedule = collectives::barrier_dissemination({rank, n_});
                return "barrier";
        }
    }

  private:
    TeamShape shape(std::uint32_t rank) const { return {rank, n_}; }
    std::span<std::byte> input(std::uint32_t rank, std::uint64_t bytes) {
        const std::span<std::byte> made = play_.buffer(bytes, {});
        fill(made, sources_[rank]);
        return made;
    }
    std::span<std::byte> output(std::uint64_t bytes) { return play_.buffer(bytes, std::byte{0xEE}); }
    // Bytes [at, at + bytes) of the rank's input.
    void append(std::vector<std::byte>& to, std::uint32_t rank, std::uint64_t at, std::uint64_t bytes) const {
        for (std::uint64_t i = 0; i < bytes; ++i)
            to.push_back(byte_of(sources_[rank], at + i));
    }

    std::string alltoall(std::vector<Part>& parts) {
        const std::uint64_t bytes = bytes_ % 20'000 + 1;
        const auto credits = static_cast<std::uint32_t>(random_() % 4);
        for (std::uint32_t rank = 0; rank < n_; ++rank) {
            Part& part = parts[rank];
            part.schedule = credits == 0 ? collectives::alltoall_pairwise(shape(rank), bytes)
                                         : collectives::alltoall_linear(shape(rank), bytes, credits);
            part.slots = {input(rank, bytes * n_), output(bytes * n_)};
            part.result = 1;
            for (std::uint32_t from = 0; from < n_; ++from)
                append(part.wanted, from, rank * bytes, bytes);
        }
        return fmt::format("alltoall of {} B", bytes);
    }
    std::string allgather(std::vector<Part>& parts) {
        std::vector<std::uint64_t> bytes(n_), offsets(n_);
        for (std::uint64_t& each : bytes)
            each = play_.any_size() / 3;
        std::exclusive_scan(bytes.begin(), bytes.end(), offsets.begin(), std::uint64_t{0});
        const std::uint64_t total = offsets.back() + bytes.back();
        const bool ring = random_() % 2 == 0;
        const std::uint64_t segment = random_() % 2 == 0 ? 0 : 4096;
        const auto credits = 1 + static_cast<std::uint32_t>(random_() % 3);
        for (std::uint32_t rank = 0; rank < n_; ++rank) {
            Part& part = parts[rank];
            part.schedule = ring
                                ? collectives::allgatherv_ring(shape(rank), bytes, offsets, false, segment)
                                : collectives::allgatherv_direct(shape(rank), bytes, offsets, false, credits);
            part.slots = {input(rank, bytes[rank]), output(total)};
            part.result = 1;
            for (std::uint32_t from = 0; from < n_; ++from)
                append(part.wanted, from, 0, bytes[from]);
        }
        return fmt::format("allgather of {} B in all", total);
    }
    std::string bcast(std::vector<Part>& parts) {
        const std::uint64_t kind = random_() % 3;
        for (std::uint32_t rank = 0; rank < n_; ++rank) {
            Part& part = parts[rank];
            part.schedule = kind == 0   ? collectives::bcast_binomial(shape(rank), root_, bytes_)
                            : kind == 1 ? collectives::bcast_chain(shape(rank), root_, bytes_, 4096)
                                        : collectives::bcast_ring(shape(rank), root_, bytes_);
            part.slots = {rank == root_ ? input(rank, bytes_) : output(bytes_)};
            part.result = 0;
            append(part.wanted, root_, 0, bytes_);
        }
        return fmt::format("bcast of {} B from rank {}", bytes_, root_);
    }

    std::uint64_t whole_numbers() const { return (bytes_ + 3) / 4 * 4; }
    // Sums of 32-bit numbers, which wrap, over the ranks [0, upto).
    std::vector<std::byte> sums(std::uint64_t bytes, std::uint32_t upto) const {
        std::vector<std::uint32_t> values(bytes / 4);
        for (std::uint32_t rank = 0; rank < upto; ++rank) {
            std::vector<std::byte> operands;
            append(operands, rank, 0, bytes);
            for (std::size_t i = 0; i < values.size(); ++i) {
                std::uint32_t value = 0;
                std::memcpy(&value, operands.data() + i * 4, 4);
                values[i] += value;
            }
        }
        std::vector<std::byte> made(bytes);
        std::memcpy(made.data(), values.data(), bytes);
        return made;
    }
    static constexpr collectives::Reducing sum{schedule::DataType::uint32, schedule::Reduction::sum};

    std::string reduce_to_all(std::vector<Part>& parts) {
        const std::uint64_t bytes = whole_numbers();
        const bool ring = random_() % 2 == 0;
        const std::uint64_t segment = random_() % 2 == 0 ? 0 : 4096;
        for (std::uint32_t rank = 0; rank < n_; ++rank) {
            Part& part = parts[rank];
            part.schedule = ring ? collectives::allreduce_ring(shape(rank), bytes, sum, false, segment)
                                 : collectives::allreduce_recursive_doubling(shape(rank), bytes, sum, false);
            part.slots = {input(rank, bytes), output(bytes)};
            part.result = 1;
            part.wanted = sums(bytes, n_);
        }
        return fmt::format("allreduce of {} B", bytes);
    }
    std::string reduce_to_root(std::vector<Part>& parts) {
        const std::uint64_t bytes = whole_numbers(), kind = random_() % 3;
        const std::uint64_t segment = random_() % 2 == 0 ? 0 : 4096;
        for (std::uint32_t rank = 0; rank < n_; ++rank) {
            Part& part = parts[rank];
            part.schedule = kind == 0 ? collectives::reduce_binomial(shape(rank), root_, bytes, sum, false)
                            : kind == 1
                                ? collectives::reduce_chain(shape(rank), root_, bytes, sum, false, segment)
                                : collectives::reduce_ring(shape(rank), root_, bytes, sum, false, segment);
            part.slots = {input(rank, bytes)};
            if (rank != root_) continue;
            part.slots.push_back(output(bytes));
            part.result = 1;
            part.wanted = sums(bytes, n_);
        }
        return fmt::format("reduce of {} B to rank {}", bytes, root_);
    }
    std::string scan(std::vector<Part>& parts) {
        const std::uint64_t bytes = whole_numbers();
        const bool exclusive = random_() % 2 == 0, chain = random_() % 2 == 0;
        for (std::uint32_t rank = 0; rank < n_; ++rank) {
            Part& part = parts[rank];
            part.schedule =
                chain ? collectives::scan_chain(shape(rank), bytes, sum, false, exclusive, 4096)
                      : collectives::scan_recursive_doubling(shape(rank), bytes, sum, false, exclusive);
            part.slots = {input(rank, bytes), output(bytes)};
            if (exclusive && rank == 0) continue;  // undefined there
            part.result = 1;
            part.wanted = sums(bytes, exclusive ? rank : rank + 1);
        }
        return fmt::format("{} of {} B", exclusive ? "exscan" : "scan", bytes);
    }
    std::string gather(std::vector<Part>& parts) {
        const bool binomial = random_() % 2 == 0;
        const Blocks blocks(n_, bytes_ % 20'000 + 1);
        const std::uint64_t bytes = blocks.sizes[0];
        for (std::uint32_t rank = 0; rank < n_; ++rank) {
            Part& part = parts[rank];
            part.schedule = binomial ? collectives::gather_binomial(shape(rank), root_, bytes, false)
                                     : collectives::gatherv_linear(shape(rank), root_, bytes, blocks.sizes,
                                                                   blocks.offsets, false, 2);
            part.slots = {input(rank, bytes)};
            if (rank != root_) continue;
            part.slots.push_back(output(bytes * n_));
            part.result = 1;
            for (std::uint32_t from = 0; from < n_; ++from)
                append(part.wanted, from, 0, bytes);
        }
        return fmt::format("gather of {} B to rank {}", bytes, root_);
    }
    std::string scatter(std::vector<Part>& parts) {
        const bool binomial = random_() % 2 == 0;
        const Blocks blocks(n_, bytes_ % 20'000 + 1);
        const std::uint64_t bytes = blocks.sizes[0];
        for (std::uint32_t rank = 0; rank < n_; ++rank) {
            Part& part = parts[rank];
            part.schedule = binomial ? collectives::scatter_binomial(shape(rank), root_, bytes, false)
                                     : collectives::scatterv_linear(shape(rank), root_, bytes, blocks.sizes,
                                                                    blocks.offsets, false, 2);
            if (rank == root_) part.slots.push_back(input(rank, bytes * n_));
            part.slots.push_back(output(bytes));
            part.result = part.slots.size() - 1;
            append(part.wanted, root_, rank * bytes, bytes);
        }
        return fmt::format("scatter of {} B from rank {}", bytes, root_);
    }

    Play& play_;
    std::mt19937_64& random_;
    const std::uint32_t n_;
    std::vector<std::uint64_t> sources_;
    std::uint32_t root_ = 0;
    std::uint64_t bytes_ = 0;
};

}  // namespace

void collective(Play& play) {
    Stage& stage = play.stage();
    std::vector<Part> parts;
    const std::string text = Maker(play).make(parts);
    const std::uint32_t sequence = play.next_sequence();
    std::vector<std::uint32_t> order(stage.ranks());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::shuffle(order, play.random());
    for (const std::uint32_t rank : order) {
        if (!stage.present(rank)) continue;
        Part& part = parts[rank];
        std::vector<memory::HostRange> ranges;
        for (const std::span<std::byte> slot : part.slots)
            ranges.push_back(range(slot));
        Call& call = play.call(rank, stage.everybody(), text);
        if (part.result) {
            call.written = part.slots[*part.result];
            call.check = [got = call.written, wanted = std::move(part.wanted)] {
                return difference(got, wanted);
            };
        }
        play.began(call, stage.engine(rank).start(stage.team(rank), play.plan(std::move(part.schedule)),
                                                  sequence, ranges, &call));
        play.rounds(play.random()() % 3);
    }
}

}  // namespace offpath::campaign
