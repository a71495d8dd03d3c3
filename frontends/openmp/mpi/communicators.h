// The attachment of the device to the job of hosts and devices, and the communicators of its regions.
//
// A communicator has a team of the devices of its ranks, for collectives and windows. Messages between hosts
// and devices use a mixed team (mpi/runtime/mixed_teams.h), which all communicators of the same ranks share.
// On MPI_COMM_WORLD and MPI_COMM_SELF, messages between devices use the mixed team, too, so that a receive
// can take a message of either end.
//
// Ownership: a communicator belongs to its handle; windows hold its team. Threads: any, once attached.
#pragma once

#include <mpi.h>
#include <offpath/offpath.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace offpath::region_mpi {

using SharedTeam = std::shared_ptr<offpath_team>;

struct Communicator {
    std::vector<std::uint32_t> ranks;  // of the world
    std::uint32_t rank = 0, size = 1;
    SharedTeam devices;
    std::uint64_t id = 0;               // of `devices`
    bool takes_hosts = false;           // a receive without the key takes messages of hosts, too
    std::atomic<bool> to_hosts{false};  // the key REMOTE_DEST_HETERO
    std::atomic<bool> errors_return{false};
    std::atomic<std::uint64_t> children{0};  // communicators made of it
};

// Throws MpiError: MPI_ERR_COMM, or MPI_ERR_OTHER while the device is not attached.
Communicator& communicator_of(MPI_Comm handle);
bool attached();
offpath_context_h context();

// The communicator of these ranks of the world, of which this is one. `number` tells those of the same ranks
// apart. Throws MpiError.
std::unique_ptr<Communicator> make_communicator(std::vector<std::uint32_t> ranks, std::uint64_t number);
// Makes a duplicate with a handle. Collective over the devices of the communicator. Throws MpiError.
MPI_Comm duplicate(Communicator& parent);
// Throws MpiError.
offpath_team_h mixed_team(const Communicator& communicator);
// A mixed team for a window. Hosts and devices make such teams in the same order. Throws MpiError.
SharedTeam new_mixed_team(const Communicator& communicator);

// The predefined ones, while the device is attached.
void open_communicators(std::uint32_t rank, std::uint32_t size);

// A handle as a number. MPI's handles are pointers or integers.
template <typename Handle>
std::uint64_t bits_of(Handle handle) {
    std::uint64_t bits = 0;
    static_assert(sizeof handle <= sizeof bits);
    std::memcpy(&bits, &handle, sizeof handle);
    return bits;
}

// The host's handle for a predefined object becomes the device's; others stay as they are. Programs hand
// variables with the host's handles to regions.
std::uint64_t own_bits(std::uint64_t bits);

template <typename Handle>
Handle own(Handle handle) {
    const std::uint64_t bits = own_bits(bits_of(handle));
    std::memcpy(&handle, &bits, sizeof handle);
    return handle;
}

}  // namespace offpath::region_mpi
