// The collectives of the C API: check, look the schedule up, start it.
#include "base/log.h"
#include "client/caught.h"
#include "client/context.h"
#include "collectives/selection.h"

#include <offpath/collectives.h>

#include <cstring>

using namespace offpath;
using namespace offpath::client;

namespace {

// What a schedule was built from starts with one of these.
enum class Call : std::uint64_t { alltoall = 1, alltoallv, allgather, allgatherv, bcast, barrier };

constexpr std::uint64_t max_bytes = schedule::max_slot_bytes;

bool multiplies(std::uint64_t a, std::uint64_t b) {
    return a == 0 || b <= max_bytes / a;
}

bool fits(std::span<const std::size_t> bytes, std::span<const std::size_t> offsets) {
    for (std::size_t i = 0; i < bytes.size(); ++i)
        if (bytes[i] > max_bytes || offsets[i] > max_bytes - bytes[i]) return false;
    return true;
}

bool any(std::span<const std::size_t> bytes) {
    for (std::size_t b : bytes)
        if (b != 0) return true;
    return false;
}

std::size_t extent(std::span<const std::size_t> bytes, std::span<const std::size_t> offsets) {
    std::size_t end = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i)
        if (bytes[i] != 0) end = std::max(end, bytes[i] + offsets[i]);
    return end;
}

offpath_status_t invalid(const char* call, const char* what) {
    log::error("{}: {}", call, what);
    return OFFPATH_ERR_INVALID;
}

// A call on its way: the lock, the key that grows, the buffers.
class Starter {
  public:
    Starter(offpath_team& team, Call call) : team_(team), context_(*team.context), guard_(context_.lock()) {
        context_.key.assign({static_cast<std::uint64_t>(call), team.rank, team.size});
    }
    Starter& key(std::uint64_t word) {
        context_.key.push_back(word);
        return *this;
    }
    Starter& key(std::span<const std::size_t> words) {
        context_.key.insert(context_.key.end(), words.begin(), words.end());
        return *this;
    }
    // The buffers of the user slots in order.
    template <typename Build>
    offpath_status_t run(std::initializer_list<const void*> buffers, std::unique_ptr<std::byte[]> owned,
                         offpath_request_h* request, Build&& build) {
        Status status = Status::ok;
        const RegisteredSchedule* schedule = context_.schedules.get(context_.key, build, status);
        if (schedule == nullptr) return to_c(status);
        context_.ranges.clear();
        offpath_request::Used used[2];
        std::size_t slot = 0;
        for (const void* buffer : buffers) {
            if (slot == schedule->slot_bytes.size()) break;
            const std::uint64_t bytes = schedule->slot_bytes[slot];
            const auto begin = reinterpret_cast<std::uintptr_t>(buffer);
            used[slot++] = {begin, begin + bytes};
            context_.ranges.push_back(context_.resolve(buffer, bytes));
        }
        return to_c(context_.start(team_, *schedule, context_.ranges, std::span(used, slot), std::move(owned),
                                   request));
    }

  private:
    offpath_team& team_;
    offpath_context& context_;
    std::unique_lock<std::mutex> guard_;
};

std::unique_ptr<std::byte[]> copy_of(const void* data, std::size_t bytes) {
    auto copy = std::make_unique_for_overwrite<std::byte[]>(bytes);
    if (bytes != 0) std::memcpy(copy.get(), data, bytes);
    return copy;
}

bool usable(offpath_team_h team, offpath_request_h* request) {
    return team != nullptr && request != nullptr && !team->destroyed;
}

std::vector<std::uint64_t> words(std::span<const std::size_t> values) {
    return {values.begin(), values.end()};
}

}  // namespace

extern "C" {

offpath_status_t offpath_ialltoall(offpath_team_h team, const void* send, void* recv, size_t bytes,
                                   offpath_request_h* request) try {
    if (!usable(team, request)) return OFFPATH_ERR_INVALID;
    if (!multiplies(team->size, bytes)) return invalid("offpath_ialltoall", "the size is out of range");
    if (bytes != 0 && (send == nullptr || recv == nullptr))
        return invalid("offpath_ialltoall", "a buffer is null");
    std::unique_ptr<std::byte[]> owned;
    if (send == OFFPATH_IN_PLACE) {
        owned = copy_of(recv, team->size * bytes);
        send = owned.get();
    }
    return Starter(*team, Call::alltoall).key(bytes).run({send, recv}, std::move(owned), request, [&] {
        return collectives::alltoall(team->shape(), bytes);
    });
} catch (...) {
    return caught("offpath_ialltoall");
}

offpath_status_t offpath_ialltoallv(offpath_team_h team, const void* send, const size_t* send_bytes,
                                    const size_t* send_offsets, void* recv, const size_t* recv_bytes,
                                    const size_t* recv_offsets, offpath_request_h* request) try {
    if (!usable(team, request)) return OFFPATH_ERR_INVALID;
    const bool in_place = send == OFFPATH_IN_PLACE;
    if (recv_bytes == nullptr || recv_offsets == nullptr ||
        (!in_place && (send_bytes == nullptr || send_offsets == nullptr)))
        return invalid("offpath_ialltoallv", "an array is null");
    const std::span<const std::size_t> rb(recv_bytes, team->size), ro(recv_offsets, team->size);
    const std::span<const std::size_t> sb(in_place ? recv_bytes : send_bytes, team->size);
    const std::span<const std::size_t> so(in_place ? recv_offsets : send_offsets, team->size);
    if (!fits(sb, so) || !fits(rb, ro))
        return invalid("offpath_ialltoallv", "sizes or offsets are out of range");
    if ((any(sb) && send == nullptr) || (any(rb) && recv == nullptr))
        return invalid("offpath_ialltoallv", "a buffer is null");
    std::unique_ptr<std::byte[]> owned;
    if (in_place) {
        owned = copy_of(recv, extent(rb, ro));
        send = owned.get();
    }
    return Starter(*team, Call::alltoallv)
        .key(sb)
        .key(so)
        .key(rb)
        .key(ro)
        .run({send, recv}, std::move(owned), request, [&] {
            const auto s = words(sb), d = words(so), r = words(rb), e = words(ro);
            return collectives::alltoallv(team->shape(), {s, d, r, e});
        });
} catch (...) {
    return caught("offpath_ialltoallv");
}

offpath_status_t offpath_iallgather(offpath_team_h team, const void* send, void* recv, size_t bytes,
                                    offpath_request_h* request) try {
    if (!usable(team, request)) return OFFPATH_ERR_INVALID;
    if (!multiplies(team->size, bytes)) return invalid("offpath_iallgather", "the size is out of range");
    if (bytes != 0 && (send == nullptr || recv == nullptr))
        return invalid("offpath_iallgather", "a buffer is null");
    const bool in_place = send == OFFPATH_IN_PLACE;
    const auto build = [&] {
        std::vector<std::uint64_t> sizes(team->size, bytes), offsets(team->size);
        for (std::size_t i = 0; i < team->size; ++i)
            offsets[i] = i * bytes;
        return collectives::allgatherv(team->shape(), sizes, offsets, in_place);
    };
    Starter starter(*team, Call::allgather);
    starter.key(in_place).key(bytes);
    return in_place ? starter.run({recv}, nullptr, request, build)
                    : starter.run({send, recv}, nullptr, request, build);
} catch (...) {
    return caught("offpath_iallgather");
}

offpath_status_t offpath_iallgatherv(offpath_team_h team, const void* send, void* recv,
                                     const size_t* recv_bytes, const size_t* recv_offsets,
                                     offpath_request_h* request) try {
    if (!usable(team, request)) return OFFPATH_ERR_INVALID;
    if (recv_bytes == nullptr || recv_offsets == nullptr)
        return invalid("offpath_iallgatherv", "an array is null");
    const std::span<const std::size_t> bytes(recv_bytes, team->size), offsets(recv_offsets, team->size);
    if (!fits(bytes, offsets)) return invalid("offpath_iallgatherv", "sizes or offsets are out of range");
    if (any(bytes) && (recv == nullptr || (send == nullptr && bytes[team->rank] != 0)))
        return invalid("offpath_iallgatherv", "a buffer is null");
    const bool in_place = send == OFFPATH_IN_PLACE;
    const auto build = [&] {
        return collectives::allgatherv(team->shape(), words(bytes), words(offsets), in_place);
    };
    Starter starter(*team, Call::allgatherv);
    starter.key(in_place).key(bytes).key(offsets);
    return in_place ? starter.run({recv}, nullptr, request, build)
                    : starter.run({send, recv}, nullptr, request, build);
} catch (...) {
    return caught("offpath_iallgatherv");
}

offpath_status_t offpath_ibcast(offpath_team_h team, void* buffer, size_t bytes, uint32_t root,
                                offpath_request_h* request) try {
    if (!usable(team, request)) return OFFPATH_ERR_INVALID;
    if (root >= team->size) return invalid("offpath_ibcast", "the root is not in the team");
    if (bytes > max_bytes) return invalid("offpath_ibcast", "the size is out of range");
    if (bytes != 0 && buffer == nullptr) return invalid("offpath_ibcast", "the buffer is null");
    return Starter(*team, Call::bcast).key(root).key(bytes).run({buffer}, nullptr, request, [&] {
        return collectives::bcast(team->shape(), root, bytes);
    });
} catch (...) {
    return caught("offpath_ibcast");
}

offpath_status_t offpath_ibarrier(offpath_team_h team, offpath_request_h* request) try {
    if (!usable(team, request)) return OFFPATH_ERR_INVALID;
    return Starter(*team, Call::barrier).run({}, nullptr, request, [&] {
        return collectives::barrier(team->shape());
    });
} catch (...) {
    return caught("offpath_ibarrier");
}
}
