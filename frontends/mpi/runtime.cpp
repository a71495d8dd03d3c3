#include "runtime.h"

#include <fmt/format.h>

#include <unistd.h>

#include <array>
#include <cstdio>
#include <exception>
#include <thread>
#include <type_traits>

#include "base/environment.h"
#include "base/variables.h"
#include "communicators.h"
#include "counters.h"
#include "datatypes.h"
#include "operations.h"
#include "p2p/parcel.h"
#include "p2p/state.h"
#include "rma/windows.h"
#include "staging.h"
#include "tuning/agreement.h"
#include "tuning/samples.h"
#include "tuning/switches.h"

namespace offpath::mpi {
namespace {

static_assert(std::is_trivially_copyable_v<Settings>);

Settings read_settings() {
    Settings settings;
    settings.on = environment::flag("OFFPATH", true) ? 1 : 0;
    environment::flag("OFFPATH_AUTOSTART", false);  // each node's own, but a wrong value is said here
    settings.verbose = static_cast<std::uint8_t>(environment::number("OFFPATH_VERBOSE", 1));
    settings.explain = environment::flag("OFFPATH_EXPLAIN", false) ? 1 : 0;
    settings.first_trial_after = environment::number("OFFPATH_REFINE_AFTER", Slot::usual_first_trial);
    if (!environment::flag("OFFPATH_REFINE", true)) settings.first_trial_after = 0;
    settings.refine_sums = environment::flag("OFFPATH_REFINE_SUMS", false) ? 1 : 0;
    settings.agree_ms = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(environment::number("OFFPATH_AGREE_MS", 250), 1U << 30));
    settings.selection = read_selection();
    settings.p2p = p2p::read_settings();
    return settings;
}

// Rank 0's environment is the job's. Ranks decide alone later, so they have to start from the same settings.
Settings agree_on_settings(int rank) {
    Settings settings;
    if (rank == 0) {
        try {
            settings = read_settings();
        } catch (const std::exception& error) {
            say(error.what());
            PMPI_Abort(MPI_COMM_WORLD, 2);
        }
    }
    PMPI_Bcast(&settings, sizeof settings, MPI_BYTE, 0, MPI_COMM_WORLD);
    return settings;
}

// A table that cannot be read is said once, and changes nothing.
std::vector<TableRow> read_table() {
    const std::string path = environment::text("OFFPATH_TUNING", "");
    if (path.empty() || path == "off") return {};
    try {
        return Table::read(path).rows();
    } catch (const std::invalid_argument& error) {
        say(fmt::format("{}; the fixed switch-overs are used", error.what()));
        return {};
    }
}

void agree_on_table(int rank) {
    static_assert(std::is_trivially_copyable_v<TableRow>);
    std::vector<TableRow> rows;
    if (rank == 0) rows = read_table();
    std::uint64_t count = rows.size();
    PMPI_Bcast(&count, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    rows.resize(count);
    PMPI_Bcast(rows.data(), static_cast<int>(count * sizeof(TableRow)), MPI_BYTE, 0, MPI_COMM_WORLD);
    runtime().table = Table(std::move(rows));
}

int bootstrap_allgather(void* user, const void* mine, std::size_t bytes, void* all) {
    const MPI_Comm comm = *static_cast<MPI_Comm*>(user);
    const int count = static_cast<int>(bytes);
    return PMPI_Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, comm) == MPI_SUCCESS ? 0 : 1;
}

// Whether there is something to attach to on every node. Where nobody started a daemon this is no error of
// anybody's. A device of its own is there if the settings say so: that it does not answer is worth an error.
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
    return fmt::format(
        "no daemon on some node in {}: the program runs on the host's MPI (`offpath run` or "
        "OFFPATH_AUTOSTART=1 "
        "starts daemons; OFFPATH=off silences this)",
        session_directory());
}

// Releases of an MPI share the library's name, and a later one has calls that would pass us by.
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
    // Others that have MPICH's binary interface are not known here.
    constexpr int ours = MPICH_NUMVERSION / 10'000'000;
    constexpr int our_minor = MPICH_NUMVERSION / 100'000 % 100;
    int minor = 0;
    return std::sscanf(version, "MPICH Version: %d.%d", &release, &minor) != 2 || release != ours ||
           minor > our_minor;
#endif
#endif
}

// MPICH up to 4.1 ends its connections over TCP in MPI_Finalize: each rank asks every peer for a last answer,
// and when it has all answers it answers nobody any more. A rank that has answered while it was still outside
// MPI_Finalize, in the exit of a barrier for instance, gets no answer itself, and hangs. So all ranks have
// left MPICH's progress before any enters MPI_Finalize. What the devices say of it does not matter: a lost
// one delays nobody for long.
void leave_progress_together() {
#ifdef MPICH_NUMVERSION
    offpath_team_h everybody = nullptr;
    offpath_request_h request = nullptr;
    if (offpath_team_world(runtime().context, &everybody) != OFFPATH_OK) return;
    offpath_status_t status = OFFPATH_RETRY;
    while ((status = offpath_ibarrier(everybody, &request)) == OFFPATH_RETRY)
        std::this_thread::yield();
    if (status != OFFPATH_OK) return;
    constexpr std::uint64_t patience_ns = 10'000'000'000;
    offpath_request_wait_for(request, patience_ns);
    offpath_request_free(request);
#endif
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

void attach() {
    Runtime& r = runtime();
    MPI_Comm parent = MPI_COMM_NULL;
    PMPI_Comm_rank(MPI_COMM_WORLD, &r.rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &r.size);
    PMPI_Comm_get_parent(&parent);
    if (r.size < 2 || parent != MPI_COMM_NULL) return;
    r.settings = agree_on_settings(r.rank);
    if (r.settings.on == 0) return;
    if (r.rank == 0 && r.settings.verbose > 0)
        for (const std::string& line : environment::unknown_variables())
            say(line);
    if (is_of_another_release()) {
        if (r.rank == 0)
            say("the program runs on the host's MPI: this is the front end for another release of it");
        return;
    }
    agree_on_table(r.rank);

    PMPI_Comm_dup(MPI_COMM_WORLD, &r.service);
    PMPI_Comm_set_errhandler(r.service, MPI_ERRORS_RETURN);
    const offpath_status_t status = attach_to_daemon();
    if (status != OFFPATH_OK) {
        if (r.rank == 0) say(explain_host_only(status));
        PMPI_Comm_free(&r.service);
        return;
    }
    if (r.rank == 0) open_switches();
    open_datatypes();
    p2p::open_pairs();
    open_communicators();
    open_windows();
    runtime_active.store(true);
}

void detach() {
    if (!active()) return;
    Runtime& r = runtime();
    finish_all_operations();
    p2p::finish_all();
    settle_all_votes();
    forget_samples();
    bool said = print_summary();
    said = p2p::print_summary() || said;
    said = print_one_sided_summary() || said;
    if (!said && r.rank == 0 && r.settings.verbose > 0)
        say("nothing was offloaded: no collective, message or window was of a kind that goes to the device");
    close_windows();
    close_communicators();
    close_datatypes();
    close_staging();
    p2p::close_parcels();
    p2p::close_pairs();
    // No daemon goes to rest while another rank still has work on it.
    PMPI_Barrier(r.service);
    runtime_active.store(false);
    PMPI_Comm_free(&r.service);
    leave_progress_together();
    offpath_finalize(r.context);
    r.context = nullptr;
}

}  // namespace offpath::mpi
