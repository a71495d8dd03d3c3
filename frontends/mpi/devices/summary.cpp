#include "summary.h"

#include <fmt/format.h>
#include <mpi.h>
#include <nlohmann/json.hpp>

#include <array>
#include <atomic>
#include <cstdint>

#include "communicators/counters.h"
#include "runtime/runtime.h"
#include "runtime/summary_file.h"

namespace offpath::mpi::devices {
namespace {

struct Count {
    std::atomic<std::uint64_t> messages{0}, bytes{0};
    void add(std::size_t size) {
        messages.fetch_add(1, std::memory_order_relaxed);
        bytes.fetch_add(size, std::memory_order_relaxed);
    }
};
Count sent, received;

}  // namespace

void count_sent(std::size_t bytes) {
    sent.add(bytes);
}
void count_received(std::size_t bytes) {
    received.add(bytes);
}

std::span<const Counter> counters() {
    static const std::array<Counter, 4> all{{
        {"messages_to_devices", "messages sent to devices that are ranks of target regions", Unit::events,
         [] { return sent.messages.load(std::memory_order_relaxed); }},
        {"messages_to_devices_bytes", "bytes of them", Unit::bytes,
         [] { return sent.bytes.load(std::memory_order_relaxed); }},
        {"messages_from_devices", "messages received from such devices", Unit::events,
         [] { return received.messages.load(std::memory_order_relaxed); }},
        {"messages_from_devices_bytes", "bytes of them", Unit::bytes,
         [] { return received.bytes.load(std::memory_order_relaxed); }},
    }};
    return all;
}

bool print_summary() {
    const std::array<std::uint64_t, 4> mine{sent.messages, sent.bytes, received.messages, received.bytes};
    std::array<std::uint64_t, 4> all{};
    PMPI_Reduce(mine.data(), all.data(), static_cast<int>(mine.size()), MPI_UINT64_T, MPI_SUM, 0,
                runtime().service);
    runtime().offloaded |= all[0] + all[2] > 0;
    if (runtime().rank == 0 && runtime().settings.summary_file != 0)
        add_to_summary_file(
            "messages_with_devices",
            {{"sent", all[0]}, {"sent_bytes", all[1]}, {"received", all[2]}, {"received_bytes", all[3]}});
    if (runtime().rank != 0 || runtime().settings.verbose == 0 || all[0] + all[2] == 0) return false;
    say(fmt::format("hosts sent {} messages ({}) to devices and received {} ({}) from devices", all[0],
                    human_bytes(all[1]), all[2], human_bytes(all[3])));
    return true;
}

}  // namespace offpath::mpi::devices
