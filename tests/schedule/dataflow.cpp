#include "dataflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <tuple>
#include <unordered_map>

namespace offpath::testing {
namespace {

using namespace offpath::schedule;

template <class T>
T combine(Reduction reduction, T a, T b) {
    switch (reduction) {
        case Reduction::sum:
            return static_cast<T>(a + b);
        case Reduction::product:
            return static_cast<T>(a * b);
        case Reduction::minimum:
            return std::min(a, b);
        case Reduction::maximum:
            return std::max(a, b);
        default:
            break;
    }
    if constexpr (std::is_integral_v<T>) {
        if (reduction == Reduction::band) return static_cast<T>(a & b);
        if (reduction == Reduction::bor) return static_cast<T>(a | b);
        if (reduction == Reduction::bxor) return static_cast<T>(a ^ b);
    }
    return a;
}

template <class T>
void reduce_as(Reduction reduction, const std::byte* src, std::byte* dst, std::uint64_t bytes) {
    for (std::uint64_t at = 0; at < bytes; at += sizeof(T)) {
        T a, b;
        std::memcpy(&a, dst + at, sizeof a);
        std::memcpy(&b, src + at, sizeof b);
        a = combine(reduction, a, b);
        std::memcpy(dst + at, &a, sizeof a);
    }
}

void reduce(DataType type, Reduction reduction, const std::byte* src, std::byte* dst, std::uint64_t bytes) {
    switch (type) {
        case DataType::int8:
            return reduce_as<std::int8_t>(reduction, src, dst, bytes);
        case DataType::uint8:
            return reduce_as<std::uint8_t>(reduction, src, dst, bytes);
        case DataType::int16:
            return reduce_as<std::int16_t>(reduction, src, dst, bytes);
        case DataType::uint16:
            return reduce_as<std::uint16_t>(reduction, src, dst, bytes);
        case DataType::int32:
            return reduce_as<std::int32_t>(reduction, src, dst, bytes);
        case DataType::uint32:
            return reduce_as<std::uint32_t>(reduction, src, dst, bytes);
        case DataType::int64:
            return reduce_as<std::int64_t>(reduction, src, dst, bytes);
        case DataType::uint64:
            return reduce_as<std::uint64_t>(reduction, src, dst, bytes);
        case DataType::float32:
            return reduce_as<float>(reduction, src, dst, bytes);
        case DataType::float64:
            return reduce_as<double>(reduction, src, dst, bytes);
        default:
            std::abort();  // what the kernels do with the other types is their own test's matter
    }
}

// SplitMix64 (Steele, Lea, Flood, 2014): the tests draw so often that the generator counts.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t operator()() {
        std::uint64_t word = state_ += 0x9e37'79b9'7f4a'7c15;
        word = (word ^ (word >> 30)) * 0xbf58'476d'1ce4'e5b9;
        word = (word ^ (word >> 27)) * 0x94d0'49bb'1331'11eb;
        return word ^ (word >> 31);
    }

  private:
    std::uint64_t state_;
};

struct ChannelHash {
    std::size_t operator()(const std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>& channel) const {
        const auto& [from, to, tag] = channel;
        return Random((std::uint64_t{from} << 32 | to) ^ tag * 0x2545'f491'4f6c'dd1d)();
    }
};

class Dataflow {
  public:
    Dataflow(std::span<const Schedule> schedules, std::span<RankBuffers> buffers,
             const DataflowOptions& options)
        : schedules_(schedules), buffers_(buffers), options_(options), random_(options.seed) {
        const std::size_t size = schedules.size();
        in_flight_.assign(size, 0);
        result_.most_sends_in_flight.assign(size, 0);
        result_.first_start.assign(size, UINT64_MAX);
        result_.last_end.assign(size, 0);
        for (std::uint32_t rank = 0; rank < size; ++rank) {
            const Schedule& schedule = schedules[rank];
            nodes_.emplace_back(schedule.ops().size());
            buffers_[rank].resize(std::max(buffers_[rank].size(), schedule.slots().size()));
            for (std::size_t slot = 0; slot < schedule.slots().size(); ++slot)
                if (buffers_[rank][slot].size() < schedule.slots()[slot].bytes)
                    buffers_[rank][slot].resize(schedule.slots()[slot].bytes);
            total_ += schedule.ops().size();
            for (OpId op = 0; op < schedule.ops().size(); ++op) {
                nodes_[rank][op].missing = schedule.dependency_count(op);
                if (nodes_[rank][op].missing == 0) push({rank, op, Phase::start});
            }
        }
    }

    DataflowResult run() {
        while (!actions_.empty() || !late_actions_.empty()) {
            perform(pick(actions_.empty() ? late_actions_ : actions_));
            ++steps_;
        }
        result_.finished = done_ == total_;
        if (!result_.finished) result_.problem = stuck();
        return result_;
    }

  private:
    enum class Phase : std::uint8_t { start, transfer, end };
    struct Action {
        std::uint32_t rank;
        OpId op;
        Phase phase;  // transfer: of a recv
    };
    struct Node {
        std::uint32_t missing = 0;
        bool started = false, ended = false;
        Buffer snapshot;  // of an eager send
    };
    using Channel = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;
    struct Meeting {
        bool has_send = false, has_recv = false;
        OpId send = 0, recv = 0;
    };

    void push(Action action) {
        (action.rank == options_.slowest_rank ? late_actions_ : actions_).push_back(action);
    }
    Action pick(std::vector<Action>& from) {
        std::swap(from[random_() % from.size()], from.back());
        const Action action = from.back();
        from.pop_back();
        return action;
    }
    const Op& op(std::uint32_t rank, OpId id) const { return schedules_[rank].ops()[id]; }
    std::byte* at(std::uint32_t rank, const BufferRef& ref) {
        return buffers_[rank][ref.slot].data() + ref.offset;
    }
    void move(std::byte* dst, const std::byte* src, std::uint64_t bytes) {
        if (bytes > 0) std::memmove(dst, src, bytes);
    }
    void poison(std::byte* dst, std::uint64_t bytes) {
        for (std::uint64_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
            const std::uint64_t word = random_();
            std::memcpy(dst + at, &word, std::min<std::uint64_t>(bytes - at, sizeof word));
        }
    }

    void perform(Action action) {
        switch (action.phase) {
            case Phase::start:
                return start(action.rank, action.op);
            case Phase::transfer:
                return transfer(action.rank, action.op);
            case Phase::end:
                return end(action.rank, action.op);
        }
    }

    void call_kernel(std::uint32_t rank, const KernelCall& call) {
        std::vector<std::span<std::byte>> data;
        for (const CallBuffer& buffer : call.buffers)
            data.emplace_back(at(rank, buffer.place), buffer.bytes);
        options_.kernel(call, data);
    }

    void start(std::uint32_t rank, OpId id) {
        const Op& entry = op(rank, id);
        nodes_[rank][id].started = true;
        result_.first_start[rank] = std::min(result_.first_start[rank], steps_);
        switch (entry.kind) {
            case OpKind::send:
                return start_send(rank, id, entry);
            case OpKind::recv: {
                poison(at(rank, entry.dst), entry.bytes);
                Meeting& meeting = meetings_[{entry.peer, rank, entry.tag}];
                meeting.has_recv = true;
                meeting.recv = id;
                if (meeting.has_send) push({rank, id, Phase::transfer});
                return;
            }
            case OpKind::wait:
                if (signals_[{rank, entry.tag}] >= entry.bytes)
                    push({rank, id, Phase::end});
                else
                    waiting_[{rank, entry.tag}].push_back(id);
                return;
            case OpKind::copy:
                poison(at(rank, entry.dst), entry.bytes);
                return push({rank, id, Phase::end});
            default:
                return push({rank, id, Phase::end});
        }
    }

    void start_send(std::uint32_t rank, OpId id, const Op& entry) {
        auto& most = result_.most_sends_in_flight[rank];
        most = std::max(most, ++in_flight_[rank]);
        if (options_.eager) {
            const std::byte* src = at(rank, entry.src);
            nodes_[rank][id].snapshot.assign(src, src + entry.bytes);
            push({rank, id, Phase::end});
        }
        Meeting& meeting = meetings_[{rank, entry.peer, entry.tag}];
        meeting.has_send = true;
        meeting.send = id;
        if (meeting.has_recv) push({entry.peer, meeting.recv, Phase::transfer});
    }

    void transfer(std::uint32_t rank, OpId id) {
        const Op& recv = op(rank, id);
        const OpId send_id = meetings_.at({recv.peer, rank, recv.tag}).send;
        const Op& send = op(recv.peer, send_id);
        const std::byte* src =
            options_.eager ? nodes_[recv.peer][send_id].snapshot.data() : at(recv.peer, send.src);
        move(at(rank, recv.dst), src, recv.bytes);
        push({rank, id, Phase::end});
        if (!options_.eager) push({recv.peer, send_id, Phase::end});
    }

    void end(std::uint32_t rank, OpId id) {
        const Op& entry = op(rank, id);
        switch (entry.kind) {
            case OpKind::send:
                --in_flight_[rank];
                break;
            case OpKind::copy:
                move(at(rank, entry.dst), at(rank, entry.src), entry.bytes);
                break;
            case OpKind::reduce:
                reduce(entry.type, entry.reduction, at(rank, entry.src), at(rank, entry.dst), entry.bytes);
                break;
            case OpKind::signal:
                raise(entry.peer, entry.tag);
                break;
            case OpKind::compute:
                if (options_.kernel) call_kernel(rank, schedules_[rank].calls()[entry.tag]);
                break;
            case OpKind::recv:
            case OpKind::wait:
                break;
        }
        nodes_[rank][id].ended = true;
        result_.last_end[rank] = steps_;
        ++done_;
        for (OpId next : schedules_[rank].successors(id))
            if (--nodes_[rank][next].missing == 0) push({rank, next, Phase::start});
    }

    void raise(std::uint32_t rank, std::uint64_t signal) {
        const std::uint64_t count = ++signals_[{rank, signal}];
        std::erase_if(waiting_[{rank, signal}], [&](OpId id) {
            if (op(rank, id).bytes > count) return false;
            push({rank, id, Phase::end});
            return true;
        });
    }

    std::string stuck() const {
        for (std::uint32_t rank = 0; rank < schedules_.size(); ++rank)
            for (OpId id = 0; id < nodes_[rank].size(); ++id)
                if (nodes_[rank][id].started && !nodes_[rank][id].ended)
                    return fmt::format("rank {} {} never ends", rank, describe(id, op(rank, id)));
        return "nothing starts";
    }

    std::span<const Schedule> schedules_;
    std::span<RankBuffers> buffers_;
    const DataflowOptions& options_;
    Random random_;
    std::vector<std::vector<Node>> nodes_;
    std::vector<Action> actions_, late_actions_;
    std::unordered_map<Channel, Meeting, ChannelHash> meetings_;
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> signals_;
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<OpId>> waiting_;
    std::vector<std::uint32_t> in_flight_;
    std::size_t done_ = 0, total_ = 0;
    std::uint64_t steps_ = 0;
    DataflowResult result_;
};

}  // namespace

DataflowResult run_dataflow(std::span<const schedule::Schedule> schedules, std::span<RankBuffers> buffers,
                            const DataflowOptions& options) {
    return Dataflow(schedules, buffers, options).run();
}

}  // namespace offpath::testing
