#include <fmt/format.h>
#include <mpi.h>
#include <nlohmann/json.hpp>

#include <array>

#include "communicator_state.h"
#include "communicators/counters.h"
#include "counts.h"
#include "outstanding.h"
#include "runtime/runtime.h"
#include "runtime/summary_file.h"
#include "trace/trace.h"

namespace offpath::mpi::p2p {
namespace {

std::atomic<std::uint64_t> sent{0}, sent_bytes{0}, early{0}, only_waited_for{0}, faster_steps{0}, rescued{0};

}  // namespace

void count_sent(std::size_t bytes) {
    sent.fetch_add(1, std::memory_order_relaxed);
    sent_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void count_kept_by_host(bool is_only_waited_for) {
    (is_only_waited_for ? only_waited_for : faster_steps).fetch_add(1, std::memory_order_relaxed);
}

void count_early() {
    early.fetch_add(1, std::memory_order_relaxed);
}

void count_rescued() {
    rescued.fetch_add(1, std::memory_order_relaxed);
}

std::span<const Counter> counters() {
    static const std::array<Counter, 6> all{{
        {"messages_offloaded", "messages that the device carried, counted where they were sent", Unit::events,
         [] { return sent.load(std::memory_order_relaxed); }},
        {"messages_bytes", "bytes of them", Unit::bytes,
         [] { return sent_bytes.load(std::memory_order_relaxed); }},
        {"messages_into_posted_receives", "messages that the device put into receives posted before",
         Unit::events, [] { return early.load(std::memory_order_relaxed); }},
        {"messages_on_host_only_waited_for",
         "large messages that stayed on the host's MPI, because no end computed meanwhile", Unit::events,
         [] { return only_waited_for.load(std::memory_order_relaxed); }},
        {"messages_on_host_faster_steps",
         "large messages that went by the host's MPI because the program's steps are not longer with it, or "
         "to try it",
         Unit::events, [] { return faster_steps.load(std::memory_order_relaxed); }},
        {"messages_sent_again", "messages of a lost device that the host's MPI sent again", Unit::events,
         [] { return rescued.load(std::memory_order_relaxed); }},
    }};
    return all;
}

bool print_summary() {
    if (payload_comm() == MPI_COMM_NULL) return false;
    const std::array<std::uint64_t, 6> mine{sent, sent_bytes, early, only_waited_for, faster_steps, rescued};
    if (trace::on() && mine[3] > 0)
        trace::instant(trace::Kind::stayed, 0, mine[3], 0,
                       trace::number_of("large messages without concurrent computation"));
    std::array<std::uint64_t, 6> all{};
    PMPI_Reduce(mine.data(), all.data(), 6, MPI_UINT64_T, MPI_SUM, 0, runtime().service);
    runtime().offloaded |= all[0] > 0;
    if (runtime().rank == 0 && runtime().settings.summary_file != 0)
        add_to_summary_file("messages", {{"offloaded", all[0]},
                                         {"bytes", all[1]},
                                         {"into_posted_receives", all[2]},
                                         {"on_host_only_waited_for", all[3]},
                                         {"on_host_faster_steps", all[4]},
                                         {"sent_again", all[5]}});
    if (runtime().rank != 0 || runtime().settings.verbose == 0) return false;
    if (all[0] > 0)
        say(
            fmt::format("the device carried {} point-to-point messages ({}), {} of them into receives that "
                        "were posted before",
                        all[0], human_bytes(all[1]), all[2]));
    if (all[3] > 0)
        say(fmt::format("{} large messages without concurrent computation went by the host's MPI", all[3]));
    if (all[4] > 0)
        say(
            fmt::format("{} large messages went by the host's MPI: trials showed no gain by the device, or "
                        "there were too few for a trial",
                        all[4]));
    if (all[5] > 0)
        say(fmt::format("{} messages that a device had lost were sent again by the host's MPI", all[5]));
    return all[0] + all[3] + all[4] > 0;
}

}  // namespace offpath::mpi::p2p
