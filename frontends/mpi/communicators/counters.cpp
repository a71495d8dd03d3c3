#include <mpi.h>

#include "counters.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <atomic>
#include <bit>
#include <utility>
#include <vector>

#include "call_counts.h"
#include "communicators.h"
#include "gpu/memory.h"
#include "memory/page_sharing.h"
#include "runtime/runtime.h"
#include "runtime/summary_file.h"
#include "trace/trace.h"

namespace offpath::mpi {
namespace {

struct Counters {
    std::atomic<std::uint64_t> offloaded{0};
    std::atomic<std::uint64_t> bytes{0};
    std::atomic<std::uint64_t> second_runs{0};
};
Counters counters;

void add(std::atomic<std::uint64_t>& counter, std::uint64_t value) {
    counter.fetch_add(value, std::memory_order_relaxed);
}

void explain(MPI_Comm comm, Op op, Form form, std::uint64_t size, const std::string& decision) {
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length = 0;
    int ranks = 0;
    if (comm != MPI_COMM_NULL) {  // otherwise it was freed, but a persistent request still uses it
        PMPI_Comm_get_name(comm, name, &length);
        PMPI_Comm_size(comm, &ranks);
    }
    say(fmt::format("{} on {} ({} ranks), {}{}: {}", call_name(op, form),
                    length > 0 ? name : "an unnamed communicator", ranks, human_bytes(size),
                    traits(op).by_pair() ? " a pair" : "", decision));
}

// The back end of the memory that MPI_Alloc_mem took from offpath; null if it took none.
std::atomic<const char*> back_end_of_allocated{nullptr};

// Returns the CPU nanoseconds and bytes of this process's agent, or zeros if it has none.
std::array<std::uint64_t, 2> agent_work() {
    if (runtime().context == nullptr) return {};
    offpath_context_counters_t done{};
    done.struct_size = sizeof done;
    if (offpath_context_counters(runtime().context, &done) != OFFPATH_OK) return {};
    return {done.agent_cpu_ns, done.agent_bytes};
}

// Sums over the job of the bytes that devices copied not at all, once, and more often. Collective.
std::array<std::uint64_t, 3> copies_by_devices() {
    std::array<std::uint64_t, 3> mine{}, all{};
    offpath_copies_t copies{};
    // Only where somebody reads it: a device that has stopped would delay the end of the job.
    const bool wanted = runtime().settings.verbose >= 2 || runtime().settings.summary_file != 0;
    if (wanted && runtime().context != nullptr &&
        offpath_context_copies(runtime().context, &copies) == OFFPATH_OK)
        mine = {copies.direct, copies.once, copies.more};
    PMPI_Reduce(mine.data(), all.data(), static_cast<int>(mine.size()), MPI_UINT64_T, MPI_SUM, 0,
                runtime().service);
    return all;
}

template <std::size_t reason>
Counter counter_of() {
    constexpr auto which = static_cast<HostReason>(reason);
    return {fmt::format("collectives_on_host_{}", key_of(which)),
            fmt::format("collectives that stayed on the host's MPI: {}", describe(which)), Unit::events,
            [] { return collectives_on_host[reason].load(std::memory_order_relaxed); }};
}

template <std::size_t... reasons>
void add_reasons(std::vector<Counter>& all, std::index_sequence<reasons...>) {
    (all.push_back(counter_of<reasons + 1>()), ...);  // 0 is no reason
}

// Sums over the job, as print_summary makes them.
void add_collectives(const std::array<std::uint64_t, 3 + host_reason_count>& all, std::uint64_t staged,
                     const std::array<std::uint64_t, 3>& copies) {
    nlohmann::json on_host = nlohmann::json::object();
    for (std::size_t i = 0; i < host_reason_count; ++i)
        if (all[2 + i] > 0) on_host[describe(static_cast<HostReason>(i))] = all[2 + i];
    add_to_summary_file("collectives", {{"offloaded", all[0]},
                                        {"bytes_from_others", all[1]},
                                        {"on_host", on_host},
                                        {"run_again", all.back()},
                                        {"gpu_buffers_staged", staged}});
    offpath_context_info_t info{};
    info.struct_size = sizeof info;
    if (offpath_context_query(runtime().context, &info) == OFFPATH_OK)
        add_to_summary_file("back_end", offpath_back_end_string(info.default_back_end));
    add_to_summary_file("ranks", runtime().size);
    add_to_summary_file(
        "received_by_devices",
        {{"direct", copies[0]}, {"copied_once", copies[1]}, {"copied_more_often", copies[2]}});
}

}  // namespace

std::span<const Counter> collective_counters() {
    static const std::vector<Counter> all = [] {
        std::vector<Counter> made{
            {"collectives_offloaded", "collectives that went to the device, counted on their rank 0",
             Unit::events, [] { return counters.offloaded.load(std::memory_order_relaxed); }},
            {"collectives_bytes", "bytes that arrived here from other ranks in them", Unit::bytes,
             [] { return counters.bytes.load(std::memory_order_relaxed); }},
            {"collectives_run_again",
             "collectives of a lost device that ran again on the host's MPI, counted on their rank 0",
             Unit::events, [] { return counters.second_runs.load(std::memory_order_relaxed); }},
        };
        add_reasons(made, std::make_index_sequence<host_reason_count - 1>());
        made.push_back({"gpu_buffers_staged", "buffers in GPU memory that were copied through host memory",
                        Unit::events, [] { return std::uint64_t{gpu::staged()}; }});
        made.push_back({"agent_cpu_seconds", "CPU time of the thread that answers a remote or staging device",
                        Unit::nanoseconds, [] { return agent_work()[0]; }});
        made.push_back(
            {"agent_bytes", "bytes that this thread copied", Unit::bytes, [] { return agent_work()[1]; }});
        return made;
    }();
    return all;
}

std::string human_bytes(std::uint64_t bytes) {
    constexpr std::array<const char*, 5> units = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; value >= 1024 && unit + 1 < units.size(); ++unit)
        value /= 1024;
    return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

void count_offloaded(const Team& team, Op op, std::uint64_t bytes_from_others, std::uint64_t size_decided_by,
                     Form form) {
    add(counters.bytes, bytes_from_others);
    if (runtime().settings.summary_file != 0)
        count_call(team, team.comm, op, form, HostReason::none, size_decided_by, bytes_from_others);
    if (team.rank != 0) return;
    add(counters.offloaded, 1);
    if (runtime().settings.verbose >= 2) explain(team.comm, op, form, size_decided_by, "offloaded");
}

void count_on_host(const Team& team, MPI_Comm comm, Op op, HostReason reason, std::uint64_t size_decided_by,
                   Form form) {
    if (runtime().settings.summary_file != 0) count_call(team, comm, op, form, reason, size_decided_by, 0);
    int rank = team.rank;
    if (rank == Team::rank_unknown) PMPI_Comm_rank(comm, &rank);
    if (trace::on()) [[unlikely]]
        trace::instant(trace::Kind::decision, trace::number_of(describe(reason)), size_decided_by, 0,
                       trace::number_of(call_name(op, form)));
    if (rank != 0) return;
    if (reason == HostReason::small && form == Form::nonblocking)
        count_small(size_decided_by);
    else
        add(collectives_on_host[static_cast<std::size_t>(reason)], 1);
    if (runtime().settings.verbose >= 2) {
        explain(comm, op, form, size_decided_by, fmt::format("on the host, {}", describe(reason)));
    }
}

void count_second_run(const Team& team) {
    if (team.rank == 0) add(counters.second_runs, 1);
}

void count_allocated(const void* address, std::size_t bytes) {
    offpath_back_end_t back_end{};
    offpath_progress_t progress{};
    if (offpath_mem_query(runtime().context, address, bytes, &back_end, &progress) == OFFPATH_OK)
        back_end_of_allocated.store(offpath_back_end_string(back_end), std::memory_order_relaxed);
}

bool print_summary() {
    std::array<std::uint64_t, 3 + host_reason_count> mine{};
    std::array<std::uint64_t, 3 + host_reason_count> all{};
    mine[0] = counters.offloaded.load();
    mine[1] = counters.bytes.load();
    for (std::size_t i = 0; i < host_reason_count; ++i)
        mine[2 + i] = collectives_on_host[i].load();
    mine.back() = counters.second_runs.load();
    PMPI_Reduce(mine.data(), all.data(), static_cast<int>(mine.size()), MPI_UINT64_T, MPI_SUM, 0,
                runtime().service);
    std::array<std::uint64_t, 2> served = agent_work(), served_by_all{};
    PMPI_Reduce(served.data(), served_by_all.data(), static_cast<int>(served.size()), MPI_UINT64_T, MPI_SUM,
                0, runtime().service);
    for (std::size_t i = 0; i < host_reason_count; ++i)
        if (trace::on() && mine[2 + i] > 0)
            trace::instant(trace::Kind::stayed, 0, mine[2 + i], 0,
                           trace::number_of(describe(static_cast<HostReason>(i))));
    const std::uint64_t staged = gpu::staged();
    std::uint64_t staged_by_all = 0;
    PMPI_Reduce(&staged, &staged_by_all, 1, MPI_UINT64_T, MPI_SUM, 0, runtime().service);
    const std::array<std::uint64_t, 3> copies = copies_by_devices();
    if (runtime().settings.summary_file != 0) {
        report_calls();
        if (runtime().rank == 0) add_collectives(all, staged_by_all, copies);
    }
    runtime().offloaded |= all[0] > 0;
    if (runtime().rank != 0 || runtime().settings.verbose == 0) return false;
    if (all.back() > 0)
        say(fmt::format("{} collectives of a lost device were run again on the host's MPI", all.back()));
    if (staged_by_all > 0)
        say(fmt::format("{} buffers in GPU memory were staged in memory of the host, which the device reads",
                        staged_by_all));
    const std::uint64_t shared = memory::PageSharing::of_process().most_shared_bytes();
    if (shared > 0 && runtime().settings.verbose >= 2)
        say(fmt::format("rank 0 shared {} of its ordinary memory with its device", human_bytes(shared)));
    const std::uint64_t received = copies[0] + copies[1] + copies[2];
    if (received > 0 && runtime().settings.verbose >= 2)
        say(fmt::format("of {} that devices received, they copied {} not at all, {} once, {} more often",
                        human_bytes(received), human_bytes(copies[0]), human_bytes(copies[1]),
                        human_bytes(copies[2])));
    if (runtime().settings.verbose >= 2 && served_by_all[1] > 0)
        say(fmt::format("the agents staged {} for {:.3f} s of CPU time each GiB",
                        human_bytes(served_by_all[1]),
                        static_cast<double>(served_by_all[0]) * 1e-9 /
                            (static_cast<double>(served_by_all[1]) / (1u << 30))));

    std::uint64_t on_host = 0;
    std::string why;
    for (std::size_t i = 0; i < host_reason_count; ++i) {
        const std::uint64_t count = all[2 + i];
        if (count == 0) continue;
        on_host += count;
        why += fmt::format("{}{} {}", why.empty() ? "" : ", ", count, describe(static_cast<HostReason>(i)));
    }
    if (all[0] + on_host == 0) return false;
    offpath_context_info_t info{};
    info.struct_size = sizeof info;
    const bool known = offpath_context_query(runtime().context, &info) == OFFPATH_OK;
    if (runtime().settings.verbose >= 2 && known)
        say(fmt::format("completions by {}", static_cast<const char*>(info.completions)));
    const char* const allocated = back_end_of_allocated.load(std::memory_order_relaxed);
    say(fmt::format("offloaded {} of {} collectives ({}){}; device back end {}{}", all[0], all[0] + on_host,
                    human_bytes(all[1]), on_host > 0 ? fmt::format(", {} on the host: {}", on_host, why) : "",
                    known ? offpath_back_end_string(info.default_back_end) : "unknown",
                    allocated != nullptr ? fmt::format(", {} for memory of MPI_Alloc_mem", allocated) : ""));
    return true;
}

// Smaller collectives gain nothing at a device.
constexpr std::uint64_t least_hinted_bytes = 4 << 10;

void add_collective_hints(std::vector<std::string>& hints) {
    const std::uint64_t mine = largest_small_collective.load();
    std::uint64_t most = 0;
    PMPI_Reduce(&mine, &most, 1, MPI_UINT64_T, MPI_MAX, 0, runtime().service);
    if (most >= least_hinted_bytes)
        hints.push_back(fmt::format("OFFPATH_MIN_BYTES={}K for collectives of up to {}",
                                    std::bit_floor(most) >> 10, human_bytes(most)));
}

}  // namespace offpath::mpi
