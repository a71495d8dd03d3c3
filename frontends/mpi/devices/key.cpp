#include "key.h"

#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

#include "devices.h"
#include "runtime/hetero_key.h"
#include "runtime/regions.h"
#include "teams.h"

namespace offpath::mpi::devices {
namespace {

int switch_on(MPI_Comm comm) {
    constexpr const char* call = "MPI_Comm_set_info";
    std::vector<std::uint32_t> ranks;
    if (const int error = ranks_with_devices(comm, call, ranks); error != MPI_SUCCESS) return error;
    Team& team = own_team(comm);
    if (team.devices.load() != nullptr) return MPI_SUCCESS;
    if (team.kept_devices == nullptr) {
        const offpath_team_h made = team_for(ranks);
        if (made == nullptr)
            return raise(comm, call, MPI_ERR_OTHER, "REMOTE_DEST_HETERO: the device refuses the team");
        team.kept_devices = make_owned<Devices>(made, static_cast<int>(ranks.size()));
    }
    std::swap(team.pairs, team.pairs_aside);
    outstanding.pairs.raise();
    team.devices.store(team.kept_devices.get());
    return MPI_SUCCESS;
}

void switch_off(MPI_Comm comm) {
    Team& team = find_team(comm);
    if (team.devices.exchange(nullptr) == nullptr) return;
    std::swap(team.pairs, team.pairs_aside);
    outstanding.pairs.lower();
}

}  // namespace

int raise(MPI_Comm comm, const char* call, int error, const char* what) {
    warn(Code::not_supported, fmt::format("rank {}: {}: {}", runtime().rank, call, what));
    PMPI_Comm_call_errhandler(comm, error);
    return error;
}

Key key_in(MPI_Info info, MPI_Comm comm, const char* call, int* error) {
    *error = MPI_SUCCESS;
    // Without regions on a device, the key means as little as any that the host's MPI does not know.
    if (info == MPI_INFO_NULL || comm == MPI_COMM_NULL || !(active() || has_regions())) return Key::none;
    std::array<char, 16> text{};
    int found = 0;
    PMPI_Info_get(info, hetero_key, text.size() - 1, text.data(), &found);
    if (found == 0) return Key::none;
    const std::optional<bool> value = hetero_value(text.data());
    if (value) return *value ? Key::on : Key::off;
    const std::string what =
        fmt::format("{} is '{}'; 0, 1, false and true are accepted", hetero_key, text.data());
    *error = raise(comm, call, MPI_ERR_INFO_VALUE, what.c_str());
    return Key::none;
}

int ranks_with_devices(MPI_Comm comm, const char* call, std::vector<std::uint32_t>& ranks) {
    if (!active())
        return raise(
            comm, call, MPI_ERR_OTHER,
            "REMOTE_DEST_HETERO: hosts and devices communicate in jobs of two ranks or more that are "
            "attached to their devices");
    if (context_with_devices() == nullptr)
        return raise(comm, call, MPI_ERR_OTHER,
                     "REMOTE_DEST_HETERO: the devices of this job take no part in MPI; they do if all ranks "
                     "have a device and target regions of the program call MPI");
    int inter = 0;
    PMPI_Comm_test_inter(comm, &inter);
    if (inter == 0) ranks = world_ranks(comm);
    if (!ranks.empty()) return MPI_SUCCESS;
    return raise(comm, call, MPI_ERR_COMM,
                 "REMOTE_DEST_HETERO: the communicator has ranks outside of MPI_COMM_WORLD, which have no "
                 "device here");
}

int take_key(MPI_Comm comm, MPI_Info info) {
    int error = MPI_SUCCESS;
    const Key key = key_in(info, comm, "MPI_Comm_set_info", &error);
    if (key == Key::on) return switch_on(comm);
    if (key == Key::off && active()) switch_off(comm);
    return error;
}

}  // namespace offpath::mpi::devices
