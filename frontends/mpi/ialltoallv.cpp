// MPI_Ialltoallv: no rank knows all counts, but both ends of a pair know the pair's bytes. So each pair
// decides for itself: from the switch-over on it goes to the device, below it as a message of the host's MPI.
// The device's part is started on every rank, be it empty, since the collectives of a team must come in the
// same order on all its ranks.
#include <algorithm>
#include <climits>
#include <cstdint>

#include "buffers.h"
#include "counters.h"
#include "runtime.h"

using namespace offpath::mpi;

namespace {

constexpr int tag = 0;  // messages between two ranks keep their order, so one tag serves all calls

struct Side {
    const void* buffer;
    const int* counts;
    const int* displs;
    TypeUse use;
    MPI_Datatype type;

    std::size_t bytes(std::size_t i) const { return static_cast<std::size_t>(counts[i]) * use.bytes; }
    MPI_Aint offset(std::size_t i) const { return displs[i] * use.extent; }
};

bool plausible_side(const int* counts, const int* displs, MPI_Datatype type, int ranks) {
    return counts != nullptr && displs != nullptr && type != MPI_DATATYPE_NULL &&
           std::none_of(counts, counts + ranks, [](int count) { return count < 0; });
}

// Where the blocks of large pairs lie: in the user's buffer, or one after the other in `staging`, for which
// `staged_bytes` are needed. Offsets count from the returned address, since displacements may be negative.
struct Placement {
    MPI_Aint base = 0;
    std::size_t staged_bytes = 0;
};
Placement place(const Side& side, bool staged, std::uint64_t threshold, std::size_t ranks,
                std::vector<std::size_t>& bytes, std::vector<std::size_t>& offsets) {
    Placement placement;
    bytes.assign(ranks, 0);
    offsets.assign(ranks, 0);
    for (std::size_t i = 0; i < ranks; ++i) {
        if (side.bytes(i) < threshold) continue;
        bytes[i] = side.bytes(i);
        placement.base = std::min(placement.base, side.offset(i));
        offsets[i] = placement.staged_bytes;
        placement.staged_bytes += bytes[i];
    }
    if (staged) return placement;
    for (std::size_t i = 0; i < ranks; ++i) {
        if (bytes[i] > 0) offsets[i] = static_cast<std::size_t>(side.offset(i) - placement.base);
    }
    return placement;
}

// Packs the blocks of large pairs for sending. In place, those of small pairs follow them, as they too would
// be overwritten before they are sent.
bool stage_send(Operation& operation, const Side& send, bool with_small, const Placement& placement) {
    const auto ranks = static_cast<std::size_t>(operation.team->size);
    std::size_t bytes = placement.staged_bytes;
    for (std::size_t i = 0; with_small && i < ranks; ++i) {
        if (operation.send_bytes[i] != 0) continue;
        operation.send_offsets[i] = bytes;
        bytes += send.bytes(i);
    }
    if (bytes == 0) return true;
    operation.send_staging = acquire_staging(bytes);
    char* staging = static_cast<char*>(operation.send_staging.address);
    if (staging == nullptr) return false;
    for (std::size_t i = 0; i < ranks; ++i) {
        if (operation.send_bytes[i] == 0 && !with_small) continue;
        const auto count = static_cast<std::size_t>(send.counts[i]);
        if (!copy_packed(send.use, at(send.buffer, send.offset(i)), count,
                         staging + operation.send_offsets[i])) {
            return false;
        }
    }
    return true;
}

bool stage_receive(Operation& operation, const Side& recv, const Placement& placement) {
    if (placement.staged_bytes == 0) return true;
    operation.recv_staging = acquire_staging(placement.staged_bytes);
    if (operation.recv_staging.address == nullptr) return false;
    retain(*recv.use.layout);
    operation.recv_layout = recv.use.layout;
    for (std::size_t i = 0; i < operation.recv_bytes.size(); ++i) {
        if (operation.recv_bytes[i] == 0) continue;
        operation.pieces.push_back({at(recv.buffer, recv.offset(i)), static_cast<std::size_t>(recv.counts[i]),
                                    operation.recv_offsets[i]});
    }
    return true;
}

// The small pairs. `packed`: what is sent lies in the staging memory.
bool start_small_pairs(Operation& operation, const Side& send, const Side& recv, bool packed) {
    const Team& team = *operation.team;
    const auto ranks = static_cast<std::size_t>(team.size);
    int result = MPI_SUCCESS;
    const auto next = [&]() -> MPI_Request* {
        operation.host_parts.push_back(MPI_REQUEST_NULL);
        return &operation.host_parts.back();
    };
    for (std::size_t i = 0; i < ranks && result == MPI_SUCCESS; ++i) {
        if (operation.recv_bytes[i] != 0 || recv.bytes(i) == 0) continue;
        result = PMPI_Irecv(at(recv.buffer, recv.offset(i)), recv.counts[i], recv.type, static_cast<int>(i),
                            tag, team.shadow, next());
    }
    for (std::size_t step = 0; step < ranks && result == MPI_SUCCESS; ++step) {
        const std::size_t i = (static_cast<std::size_t>(team.rank) + step) % ranks;
        if (operation.send_bytes[i] != 0 || send.bytes(i) == 0) continue;
        if (packed) {
            result = PMPI_Isend(
                at(operation.send_staging.address, static_cast<MPI_Aint>(operation.send_offsets[i])),
                static_cast<int>(send.bytes(i)), MPI_PACKED, static_cast<int>(i), tag, team.shadow, next());
        } else {
            result = PMPI_Isend(at(send.buffer, send.offset(i)), send.counts[i], send.type,
                                static_cast<int>(i), tag, team.shadow, next());
        }
    }
    return result == MPI_SUCCESS;
}

offpath_status_t start(Operation& operation, const Side& send, const Side& recv, bool in_place,
                       std::uint64_t threshold) {
    const auto ranks = static_cast<std::size_t>(operation.team->size);
    const bool stage_what_is_sent = in_place || !send.use.contiguous();
    const Placement sent =
        place(send, stage_what_is_sent, threshold, ranks, operation.send_bytes, operation.send_offsets);
    const Placement received =
        place(recv, !recv.use.contiguous(), threshold, ranks, operation.recv_bytes, operation.recv_offsets);
    if (stage_what_is_sent && !stage_send(operation, send, in_place, sent)) return OFFPATH_ERR_MEMORY;
    if (!recv.use.contiguous() && !stage_receive(operation, recv, received)) return OFFPATH_ERR_MEMORY;

    const void* from = stage_what_is_sent ? operation.send_staging.address : at(send.buffer, sent.base);
    void* to = recv.use.contiguous() ? at(recv.buffer, received.base) : operation.recv_staging.address;
    if (!start_small_pairs(operation, send, recv, in_place)) return OFFPATH_ERR_SYSTEM;
    // In place, the small pairs' blocks have places in the staging memory but no bytes for the device.
    return start_on_device([&] {
        return offpath_ialltoallv(operation.team->handle, from, operation.send_bytes.data(),
                                  operation.send_offsets.data(), to, operation.recv_bytes.data(),
                                  operation.recv_offsets.data(), &operation.device);
    });
}

// Counted by what this rank sees: a call is offloaded if one of its pairs is.
void count(const Team& team, MPI_Comm comm, const Operation& operation, const Side& recv) {
    std::uint64_t from_others = 0;
    std::uint64_t largest = 0;
    for (std::size_t i = 0; i < operation.recv_bytes.size(); ++i) {
        largest = std::max<std::uint64_t>({largest, recv.bytes(i), operation.send_bytes[i]});
        if (static_cast<int>(i) != team.rank) from_others += operation.recv_bytes[i];
    }
    const auto is_large = [](std::size_t bytes) { return bytes > 0; };
    if (std::any_of(operation.recv_bytes.begin(), operation.recv_bytes.end(), is_large) ||
        std::any_of(operation.send_bytes.begin(), operation.send_bytes.end(), is_large)) {
        count_offloaded(team, Op::ialltoallv, from_others, largest);
    } else {
        count_on_host(team, comm, Op::ialltoallv, HostReason::small, largest);
    }
}

}  // namespace

extern "C" OFFPATH_API int MPI_Ialltoallv(const void* sendbuf, const int sendcounts[], const int sdispls[],
                                          MPI_Datatype sendtype, void* recvbuf, const int recvcounts[],
                                          const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
                                          MPI_Request* request) {
    const auto on_host = [&] {
        return PMPI_Ialltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype,
                               comm, request);
    };
    const bool in_place = sendbuf == MPI_IN_PLACE;
    if (!active() || !plausible(comm, recvbuf, request)) return on_host();
    const int ranks = find_team(comm).size;
    if (!plausible_side(recvcounts, rdispls, recvtype, ranks)) return on_host();
    if (!in_place && !plausible_side(sendcounts, sdispls, sendtype, ranks)) return on_host();
    Team* team = team_for(comm, Op::ialltoallv, 0);
    if (team == nullptr) return on_host();

    const Side recv{recvbuf, recvcounts, rdispls, use_type(recvtype), recvtype};
    const Side send = in_place ? recv : Side{sendbuf, sendcounts, sdispls, use_type(sendtype), sendtype};
    const auto self = static_cast<std::size_t>(team->rank);
    if (!recv.use.usable || !send.use.usable || send.bytes(self) != recv.bytes(self)) return on_host();

    Operation& operation = acquire_operation(Op::ialltoallv, *team);
    // A message of the host's MPI counts its bytes in an int.
    const std::uint64_t threshold =
        std::min<std::uint64_t>(runtime().settings.selection.threshold(Op::ialltoallv), INT_MAX);
    const offpath_status_t status = start(operation, send, recv, in_place, threshold);
    if (status == OFFPATH_OK) count(*team, comm, operation, recv);
    return publish(operation, status, request);
}
