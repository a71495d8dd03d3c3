#include "neighbor.h"

namespace offpath::mpi {
namespace {

std::vector<std::uint32_t> peers_of(const std::vector<Block>& blocks) {
    std::vector<std::uint32_t> peers;
    for (const Block& block : blocks)
        peers.push_back(static_cast<std::uint32_t>(block.peer));
    return peers;
}

}  // namespace

const Neighbours* neighbours_of(Team& team, MPI_Comm comm) {
    if (team.neighbours == nullptr) team.neighbours = read_neighbours(comm);
    return team.neighbours.get();
}

// If a block has no bytes for the device here, it has none at the other end either.
offpath_status_t Neighbourhood::start_neighbours(Call& call, OffloadedRequest& operation,
                                                 const Exchange& exchange) {
    const std::vector<std::uint32_t> destinations = peers_of(exchange.sends);
    const std::vector<std::uint32_t> sources = peers_of(exchange.recvs);
    return start_exchange(call, operation, exchange, [&](const DeviceExchange& device) {
        operation.send_peers.assign(destinations.begin(), destinations.end());
        operation.recv_peers.assign(sources.begin(), sources.end());
        return tell_device(operation, {DevicePart::Shape::neighbors, device.from, device.to}, [&] {
            return offpath_ineighbor_alltoallv(
                call.device_team, device.from, static_cast<std::uint32_t>(destinations.size()),
                destinations.data(), device.send_bytes, device.send_offsets, device.to,
                static_cast<std::uint32_t>(sources.size()), sources.data(), device.recv_bytes,
                device.recv_offsets, &operation.device);
        });
    });
}

}  // namespace offpath::mpi
