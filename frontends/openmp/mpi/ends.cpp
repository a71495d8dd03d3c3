#include "openmp/mpi/ends.h"

#include "mpi/runtime/mixed_teams.h"
#include "openmp/mpi/errors.h"

#include <offpath/primitives.h>

#include <string>

namespace offpath::region_mpi {

namespace teams = mpi::mixed_teams;

namespace {

std::uint32_t rank_in(const Communicator& communicator, int rank) {
    if (rank < 0 || static_cast<std::uint32_t>(rank) >= communicator.size)
        throw MpiError{MPI_ERR_RANK, "rank " + std::to_string(rank) + " of a communicator of " +
                                         std::to_string(communicator.size)};
    return static_cast<std::uint32_t>(rank);
}

}  // namespace

Destination destination_of(const Communicator& communicator, int rank) {
    const std::uint32_t to = rank_in(communicator, rank);
    if (communicator.to_hosts) return {mixed_team(communicator), teams::member(to, teams::End::host)};
    if (communicator.takes_hosts) return {mixed_team(communicator), teams::member(to, teams::End::device)};
    return {communicator.devices.get(), to};
}

Sources sources_of(const Communicator& communicator, int rank) {
    const bool any = rank == MPI_ANY_SOURCE;
    const std::uint32_t from = any ? 0 : rank_in(communicator, rank);
    if (communicator.to_hosts)
        return {mixed_team(communicator), teams::member(from, teams::End::host),
                any ? teams::one_end : teams::one_member, true};
    if (communicator.takes_hosts)
        return {mixed_team(communicator), any ? OFFPATH_ANY_SOURCE : teams::member(from, teams::End::host),
                teams::both_ends, true};
    return {communicator.devices.get(), any ? OFFPATH_ANY_SOURCE : from, teams::one_member, false};
}

std::uint32_t checked_tag(int tag) {
    if (tag < 0) throw MpiError{MPI_ERR_TAG, "the tag is " + std::to_string(tag)};
    return static_cast<std::uint32_t>(tag);
}

std::uint32_t tag_to_match(int tag) {
    return tag == MPI_ANY_TAG ? OFFPATH_ANY_TAG : checked_tag(tag);
}

}  // namespace offpath::region_mpi
