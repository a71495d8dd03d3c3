#include "client/traced.h"

#include "base/log.h"
#include "collectives/selection.h"
#include "control/socket.h"

#include <errno.h>

namespace offpath::client {
namespace {

struct NamedBuilder {
    template <typename Builder>
    NamedBuilder(Builder* its_builder, const char* its_name)
        : builder(reinterpret_cast<std::uintptr_t>(its_builder)), name(its_name) {}
    const std::uint64_t builder;
    trace::Name name;
};

// A cached schedule's key begins with its builder; a group's schedule has no key.
std::uint16_t name_of(const RegisteredSchedule& schedule) {
    static constinit trace::Name group("group"), other("schedule");
    static NamedBuilder names[] = {
        {collectives::allgatherv, "allgather"},
        {collectives::allreduce, "allreduce"},
        {collectives::alltoall, "alltoall"},
        {collectives::alltoallv, "alltoallv"},
        {collectives::barrier, "barrier"},
        {collectives::bcast, "bcast"},
        {collectives::gather, "gather"},
        {collectives::gatherv, "gatherv"},
        {collectives::reduce, "reduce"},
        {collectives::reduce_scatter, "reduce_scatter"},
        {collectives::scan, "scan"},
        {collectives::scatter, "scatter"},
        {collectives::scatterv, "scatterv"},
        {collectives::neighbor_alltoallv, "neighbor_alltoallv"},
    };
    if (schedule.key.empty()) return group.number();
    for (NamedBuilder& each : names)
        if (each.builder == schedule.key[0]) return each.name.number();
    return other.number();
}

}  // namespace

void open_trace(std::uint32_t rank, std::uint32_t size) {
    trace::About about;
    about.node = control::host_name();
    about.program = program_invocation_short_name;
    about.rank = static_cast<std::int32_t>(rank);
    about.ranks = static_cast<std::int32_t>(size);
    std::string problem;
    if (trace::open_from_environment(about, problem) != Status::ok) log::warn(Code::file, "{}", problem);
}

void trace_start(const offpath_team& team, std::uint32_t sequence, const RegisteredSchedule& schedule,
                 offpath_request& request) {
    request.traced = true;
    request.trace_id = trace::id_of_start(team.id, team.rank, sequence);
    trace::begin(trace::Kind::handed_over, request.trace_id, schedule.bytes_sent, 0, name_of(schedule));
}

}  // namespace offpath::client
