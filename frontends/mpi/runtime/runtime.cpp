#include "runtime.h"

#include <fmt/format.h>
#include <offpath/loss.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <optional>
#include <type_traits>

#include "base/environment.h"
#include "base/variables.h"
#include "last_meeting.h"
#include "losses.h"
#include "own_communicators.h"
#include "parts.h"
#include "regions.h"
#include "summary_file.h"

namespace offpath::mpi {
namespace {

Settings read_settings() {
    Settings settings;
    settings.on = environment::flag("OFFPATH", true) ? 1 : 0;
    environment::flag("OFFPATH_AUTOSTART", false);  // nodes may differ; reports an invalid value here
    settings.verbose = static_cast<std::uint8_t>(environment::number("OFFPATH_VERBOSE", 1));
    settings.summary_file = check_summary_file() ? 1 : 0;
    settings.selection = read_selection();
    return settings;
}

int bootstrap_allgather(void* user, const void* mine, std::size_t bytes, void* all) {
    const MPI_Comm comm = *static_cast<MPI_Comm*>(user);
    const int count = static_cast<int>(bytes);
    return PMPI_Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, comm) == MPI_SUCCESS ? 0 : 1;
}

// Whether every node has a device to attach to. It is no error if no daemon was started. A remote device
// counts as present if the settings name it; if it does not answer, that is an error.
bool daemons_are_there() {
    std::array<char, 256> host{};
    gethostname(host.data(), host.size() - 1);
    const std::string socket = fmt::format("{}/{}.sock", session_directory(), host.data());
    const bool remote = !environment::text("OFFPATH_DEVICES", "").empty();
    int there = remote || environment::flag("OFFPATH_AUTOSTART", false) || access(socket.c_str(), F_OK) == 0;
    PMPI_Allreduce(MPI_IN_PLACE, &there, 1, MPI_INT, MPI_MIN, runtime().service);
    return there == 1;
}

offpath_status_t attach_to_daemon() {
    Runtime& r = runtime();
    if (!daemons_are_there()) return OFFPATH_ERR_UNAVAILABLE;
    MPI_Comm node = MPI_COMM_NULL;
    int local_rank = 0;
    PMPI_Comm_split_type(r.service, MPI_COMM_TYPE_SHARED, r.rank, MPI_INFO_NULL, &node);
    PMPI_Comm_rank(node, &local_rank);
    int lowest = r.rank;
    PMPI_Bcast(&lowest, 1, MPI_INT, 0, node);
    PMPI_Comm_free(&node);
    r.node_of.resize(static_cast<std::size_t>(r.size));
    PMPI_Allgather(&lowest, 1, MPI_INT, r.node_of.data(), 1, MPI_INT, r.service);

    int provided = MPI_THREAD_SINGLE;
    PMPI_Query_thread(&provided);
    offpath_init_params_t params{};
    params.struct_size = sizeof params;
    r.threads = provided == MPI_THREAD_MULTIPLE;
    params.threads = r.threads ? OFFPATH_THREADS_MULTIPLE : OFFPATH_THREADS_SINGLE;
    params.allgather = bootstrap_allgather;
    params.allgather_user = &r.service;
    params.rank = static_cast<std::uint32_t>(r.rank);
    params.size = static_cast<std::uint32_t>(r.size);
    params.local_rank = static_cast<std::uint32_t>(local_rank);
    return offpath_init(&params, &r.context);
}

std::string explain_host_only(offpath_status_t status) {
    if (status != OFFPATH_ERR_UNAVAILABLE || !environment::text("OFFPATH_DEVICES", "").empty()) {
        return fmt::format("the program runs on the host's MPI: {}", status == OFFPATH_ERR_ACCESS
                                                                         ? "a device refused it"
                                                                         : offpath_status_string(status));
    }
    if (environment::flag("OFFPATH_AUTOSTART", false))
        return "the program runs on the host's MPI: no daemon could be started on some node";
    return fmt::format(
        "no daemon on some node in {}: the program runs on the host's MPI (`offpath run` or "
        "OFFPATH_AUTOSTART=1 "
        "starts daemons; OFFPATH=off silences this)",
        session_directory());
}

// Releases of an MPI library share its name, but a later release has calls that would bypass the front end.
bool is_of_another_release() {
#ifdef MPI_ABI
    return false;
#else
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    int release = 0;
    PMPI_Get_library_version(version, &length);
#ifdef OPEN_MPI
    return std::sscanf(version, "Open MPI v%d", &release) == 1 && release != OMPI_MAJOR_VERSION;
#else
    // Other libraries with MPICH's binary interface are unknown here.
    constexpr int ours = MPICH_NUMVERSION / 10'000'000;
    constexpr int our_minor = MPICH_NUMVERSION / 100'000 % 100;
    int minor = 0;
    return std::sscanf(version, "MPICH Version: %d.%d", &release, &minor) != 2 || release != ours ||
           minor > our_minor;
#endif
#endif
}

// MPICH up to 4.1 ends its TCP connections in MPI_Finalize: each rank asks every peer for a last answer. A
// rank that has all its answers no longer answers others. If a rank gave its answer while it was still
// outside MPI_Finalize, for instance in the exit of a barrier, it later gets no answer itself and hangs. So
// all ranks must leave MPICH's progress before any rank enters MPI_Finalize.
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40200000
constexpr bool must_leave_progress_together = true;
#else
constexpr bool must_leave_progress_together = false;
#endif

// False: some rank may not have called it.
bool meet_at_devices() {
    offpath_team_h everybody = nullptr;
    offpath_request_h request = nullptr;
    if (offpath_team_world(runtime().context, &everybody) != OFFPATH_OK) return false;
    if (offpath_ibarrier(everybody, &request) != OFFPATH_OK) return false;
    constexpr std::uint64_t patience_ns = 10'000'000'000;
    const offpath_status_t status = offpath_request_wait_for(request, patience_ns);
    offpath_request_free(request);
    return status == OFFPATH_OK;
}

// Collective. Returns when all ranks have called it: none of them has work on a device any more.
bool any_device_is_lost() {
    int lost = offpath_context_device_state(runtime().context) != OFFPATH_DEVICE_SERVES ? 1 : 0;
    PMPI_Allreduce(MPI_IN_PLACE, &lost, 1, MPI_INT, MPI_MAX, runtime().service);
    return lost != 0;
}

// Collective. Rank 0 gets the answer.
bool some_rank_knows_of_a_loss() {
    const int mine = any_loss.load(std::memory_order_relaxed) ? 1 : 0;
    int some = 0;
    PMPI_Reduce(&mine, &some, 1, MPI_INT, MPI_MAX, 0, runtime().service);
    return some != 0;
}

}  // namespace

Runtime& runtime() {
    static Runtime instance;
    return instance;
}

std::string session_directory() {
    return environment::text("OFFPATH_DIR", fmt::format("/tmp/offpath-{}", geteuid()));
}

void say(const std::string& line) {
    const std::string text = fmt::format("offpath: {}\n", line);
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
}

void warn(Code code, const std::string& line) {
    say(with_code(line, code));
}

void attach() {
    Runtime& r = runtime();
    MPI_Comm parent = MPI_COMM_NULL;
    PMPI_Comm_rank(MPI_COMM_WORLD, &r.rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &r.size);
    PMPI_Comm_get_parent(&parent);
    if (r.size < 2 || parent != MPI_COMM_NULL) return;
    r.settings = settings_of_rank_0(read_settings);
    if (r.settings.on == 0) return;
    if (r.rank == 0 && r.settings.verbose > 0)
        for (const std::string& line : environment::unknown_variables())
            warn(Code::setting, line);
    if (is_of_another_release()) {
        if (r.rank == 0)
            warn(Code::other_release,
                 "the program runs on the host's MPI: this is the front end for another release of it");
        return;
    }
    for (const Part& part : parts)
        if (part.agree_on_settings != nullptr) part.agree_on_settings();

    r.wanted_device = true;
    const FirstIdentifiersKept kept;
    r.service = own_communicator(MPI_COMM_WORLD);
    const offpath_status_t status = attach_to_daemon();
    if (status != OFFPATH_OK) {
        if (r.rank == 0) warn(Code::no_device, explain_host_only(status));
        // For `offpath run`, whose session this is: it then knows why no device has worked.
        if (environment::flag("OFFPATH_AUTOSTART", false))
            std::ofstream(session_directory() + "/not-attached");
        PMPI_Comm_free(&r.service);
        return;
    }
    for (const Part& part : parts)
        if (part.open != nullptr) part.open();
    runtime_active.store(true);
}

bool is_on_one_node() {
    const std::vector<int>& nodes = runtime().node_of;
    return std::adjacent_find(nodes.begin(), nodes.end(), std::not_equal_to<>()) == nodes.end();
}

void detach() {
    Runtime& r = runtime();
    if (!active()) {
        if (r.wanted_device && must_leave_progress_together) {
            PMPI_Barrier(MPI_COMM_WORLD);  // a rank may still receive what another one has sent
            LastMeeting(MPI_COMM_WORLD).wait_for_all();
        }
        return;
    }
    for (const Part& part : parts)
        if (part.finish != nullptr) part.finish();
    bool said = false;
    for (const Part& part : parts)
        said = (part.print_summary != nullptr && part.print_summary()) || said;
    const bool lost = some_rank_knows_of_a_loss();
    if (!said && r.rank == 0 && r.settings.verbose > 0)
        say(fmt::format("nothing was offloaded{}: {}", has_regions() ? " outside of target regions" : "",
                        lost ? "a device was lost before"
                             : "no collective, message or window was of a kind that goes to the device"));
    std::vector<std::string> hints;
    for (const Part& part : parts)
        if (part.add_hints != nullptr) part.add_hints(hints);
    if (lost || has_regions()) hints.clear();
    if (!r.offloaded && r.rank == 0 && r.settings.verbose > 0 && !hints.empty())
        say(fmt::format("the device would have had work with {}", fmt::join(hints, ", ")));
    if (r.rank == 0 && r.settings.summary_file != 0) add_to_summary_file("hints", hints);
    if (r.rank == 0 && r.settings.summary_file != 0) write_summary_file();
    for (auto part = parts.rbegin(); part != parts.rend(); ++part)
        if (part->close != nullptr) part->close();
    const bool without_devices = any_device_is_lost();
    std::optional<LastMeeting> meeting;
    if (must_leave_progress_together) meeting.emplace(r.service);
    runtime_active.store(false);
    PMPI_Comm_free(&r.service);
    if (meeting && (without_devices || !meet_at_devices())) meeting->wait_for_all();
    offpath_finalize(r.context);
    r.context = nullptr;
}

}  // namespace offpath::mpi
