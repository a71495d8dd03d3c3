// Steps that are schedules. The product's builders make them, and the product's table chooses the algorithm.
#include "collectives/collectives.h"
#include "collectives/selection.h"
#include "engine/schedules/plan.h"
#include "sim/programs/host_algorithms.h"
#include "sim/programs/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <numeric>
#include <optional>
#include <stdexcept>

namespace offpath::sim {
namespace {

using collectives::Reducing;
using collectives::TeamShape;
using schedule::Schedule;
using schedule::SlotKind;

constexpr Reducing sums_of_doubles{schedule::DataType::float64, schedule::Reduction::sum};

// The neighbours of a rank in three dimensions, as near to a cube as the number of ranks allows. The ends are
// neighbours.
std::vector<std::uint32_t> neighbours(TeamShape team) {
    std::uint32_t x = 1, y = 1;
    for (std::uint32_t i = 1; std::uint64_t{i} * i * i <= team.size; ++i)
        if (team.size % i == 0) x = i;
    const std::uint32_t rest = team.size / x;
    for (std::uint32_t i = 1; std::uint64_t{i} * i <= rest; ++i)
        if (rest % i == 0) y = i;
    const std::array<std::uint32_t, 3> sizes{x, y, rest / y};
    std::vector<std::uint32_t> found;
    std::uint32_t stride = 1;
    for (const std::uint32_t size : sizes) {
        const std::uint32_t here = team.rank / stride % size;
        for (const std::uint32_t there : {(here + size - 1) % size, (here + 1) % size})
            found.push_back(team.rank - here * stride + there * stride);
        stride *= size;
    }
    return found;
}

Schedule halo(TeamShape team, std::uint64_t bytes) {
    const std::vector<std::uint32_t> to = neighbours(team);
    // What goes down comes from above: the sources are the same ranks, the other way round.
    std::vector<std::uint32_t> from(to);
    for (std::size_t i = 0; i < from.size(); i += 2)
        std::swap(from[i], from[i + 1]);
    const std::vector<std::uint64_t> sizes(to.size(), bytes);
    std::vector<std::uint64_t> offsets(to.size());
    for (std::size_t i = 0; i < offsets.size(); ++i)
        offsets[i] = i * bytes;
    return collectives::neighbor_alltoallv(team, {to, sizes, offsets, from, sizes, offsets});
}

Schedule build(const std::string& pattern, TeamShape team, std::uint64_t bytes,
               std::optional<SendOrder> of_host) {
    if (of_host)
        if (std::optional<Schedule> schedule =
                build_of_host({pattern, bytes, 0, sums_of_doubles, *of_host, false}, team))
            return *std::move(schedule);
    const std::vector<std::uint64_t> sizes(team.size, bytes);
    std::vector<std::uint64_t> offsets(team.size);
    for (std::uint32_t i = 0; i < team.size; ++i)
        offsets[i] = i * bytes;
    if (pattern == "alltoall") return collectives::alltoall(team, bytes);
    if (pattern == "allgather") return collectives::allgatherv(team, sizes, offsets, false);
    if (pattern == "bcast") return collectives::bcast(team, 0, bytes);
    if (pattern == "allreduce") return collectives::allreduce(team, bytes, sums_of_doubles, false);
    if (pattern == "reduce") return collectives::reduce(team, 0, bytes, sums_of_doubles, false);
    if (pattern == "reduce_scatter") return collectives::reduce_scatter(team, sizes, sums_of_doubles);
    if (pattern == "gather") return collectives::gather(team, 0, bytes, false);
    if (pattern == "scatter") return collectives::scatter(team, 0, bytes, false);
    if (pattern == "scan") return collectives::scan(team, bytes, sums_of_doubles, false, false);
    if (pattern == "barrier") return collectives::barrier(team);
    return halo(team, bytes);
}

bool reduces(const std::string& pattern) {
    return pattern == "allreduce" || pattern == "reduce" || pattern == "reduce_scatter" || pattern == "scan";
}

// Nothing: the product's algorithms run.
std::optional<SendOrder> order_of(Cluster& cluster) {
    if (cluster.shape().engine != EngineKind::host) return std::nullopt;
    return send_order(cluster.platform(), false);
}

class ScheduleStep final : public Step {
  public:
    ScheduleStep(const std::string& pattern, Job& job, std::uint32_t rank, std::uint64_t bytes)
        : pattern_(pattern),
          job_(job),
          rank_(rank),
          bytes_(bytes),
          plan_(build(pattern, {rank, job.size()}, bytes, order_of(job.cluster()))) {
        for (const schedule::Slot& slot : plan_.schedule().slots()) {
            if (slot.kind != SlotKind::user) continue;
            buffers_.emplace_back(job.cluster(), slot.bytes);
            ranges_.push_back(buffers_.back().range());
        }
        if (!buffers_.empty() && job.cluster().moves_data()) fill();
    }

    std::vector<Operation> operations() override {
        engine::Team& team = job_.cluster().team_of(rank_);
        const std::uint32_t sequence = sequence_++;
        return {{[this, &team, sequence](engine::Engine& engine, Completion* done) {
                     return engine.start(team, plan_, sequence, ranges_, done);
                 },
                 fmt::format("its part of {} {}", pattern_, sequence)}};
    }
    const Schedule* schedule() const override { return &plan_.schedule(); }
    bool right() const override;

  private:
    void fill();
    // Small whole numbers: every order of the sums gives the same bits.
    static double number(std::uint32_t rank, std::size_t at) {
        return static_cast<double>(at % 13 + rank % 7);
    }
    double sum(std::uint32_t ranks, std::size_t at) const {
        double all = 0;
        for (std::uint32_t rank = 0; rank < ranks; ++rank)
            all += number(rank, at);
        return all;
    }

    const std::string pattern_;
    Job& job_;
    const std::uint32_t rank_;
    const std::uint64_t bytes_;
    engine::Plan plan_;
    mutable std::deque<Buffer> buffers_;
    std::vector<memory::HostRange> ranges_;
    std::uint32_t sequence_ = 0;
};

void ScheduleStep::fill() {
    Buffer& first = buffers_.front();
    if (reduces(pattern_)) {
        for (std::size_t i = 0; i < first.bytes().size() / sizeof(double); ++i) {
            const double value = number(rank_, i);
            std::memcpy(&first.bytes()[i * sizeof value], &value, sizeof value);
        }
    } else if (pattern_ == "scatter" && rank_ != 0) {
        return;  // its only buffer is the one that it receives into
    } else if (pattern_ != "bcast" || rank_ == 0) {
        first.fill([this](std::size_t at) { return pattern_byte(rank_, at); });
    }
}

bool ScheduleStep::right() const {
    if (buffers_.empty()) return true;
    Buffer& last = buffers_.back();
    const bool root = rank_ == 0;
    if ((pattern_ == "reduce" || pattern_ == "gather") && !root) return true;
    if (reduces(pattern_)) {
        const std::uint32_t ranks = pattern_ == "scan" ? rank_ + 1 : job_.size();
        const std::size_t offset = pattern_ == "reduce_scatter" ? rank_ * bytes_ / sizeof(double) : 0;
        for (std::size_t i = 0; i < last.bytes().size() / sizeof(double); ++i) {
            double value = 0;
            std::memcpy(&value, &last.bytes()[i * sizeof value], sizeof value);
            if (value != sum(ranks, offset + i)) return false;
        }
        return true;
    }
    if (pattern_ == "bcast") return last.holds([](std::size_t at) { return pattern_byte(0, at); });
    // What `byte(block, inside)` returns for each byte of each rank's block.
    const auto holds_blocks = [&](auto byte) {
        return last.holds([&](std::size_t at) {
            return byte(static_cast<std::uint32_t>(bytes_ > 0 ? at / bytes_ : 0),
                        bytes_ > 0 ? at % bytes_ : 0);
        });
    };
    const std::size_t mine = rank_ * bytes_;
    if (pattern_ == "alltoall")
        return holds_blocks(
            [&](std::uint32_t block, std::size_t inside) { return pattern_byte(block, mine + inside); });
    if (pattern_ == "allgather" || pattern_ == "gather")
        return holds_blocks(
            [](std::uint32_t block, std::size_t inside) { return pattern_byte(block, inside); });
    if (pattern_ == "scatter")
        return holds_blocks(
            [&](std::uint32_t, std::size_t inside) { return pattern_byte(0, mine + inside); });
    // halo: the k-th block comes from the neighbour in the other direction, which has sent it as its block
    // for this one.
    const std::vector<std::uint32_t> sources = neighbours({rank_, job_.size()});
    return holds_blocks([&](std::uint32_t block, std::size_t inside) {
        return pattern_byte(sources[block ^ 1], block * bytes_ + inside);
    });
}

}  // namespace

std::unique_ptr<Step> make_schedule_step(const std::string& pattern, Job& job, std::uint32_t rank,
                                         std::uint64_t bytes) {
    if (reduces(pattern) && bytes % sizeof(double) != 0)
        throw std::invalid_argument(
            fmt::format("{} bytes: {} sums doubles, whose size is {}", bytes, pattern, sizeof(double)));
    if (bytes == 0 && pattern != "barrier")
        throw std::invalid_argument(fmt::format("0 bytes: {} needs at least one", pattern));
    return std::make_unique<ScheduleStep>(pattern, job, rank, bytes);
}

}  // namespace offpath::sim
