// The attachment of this MPI process: made in MPI_Init, ended in MPI_Finalize, read by every intercepted
// call.
//
// `active()` is false before MPI_Init, after MPI_Finalize, without a daemon and with OFFPATH=off. Every
// intercepted call then goes straight to the host's MPI. The runtime is written only while `active()` is
// false, so no lock guards it.
#pragma once

#include <mpi.h>
#include <offpath/offpath.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "p2p/settings.h"
#include "selection.h"
#include "tuning/table.h"

namespace offpath::mpi {

// Settings that all ranks share: those of rank 0's environment. Trivially copyable.
struct Settings {
    Selection selection;
    p2p::Settings p2p;
    std::uint8_t on = 0;
    std::uint8_t verbose = 1;             // 0: errors only; 1: the summary; 2: every decision
    std::uint8_t explain = 0;             // print why calls go to the device or the host
    std::uint32_t agree_ms = 250;         // approximate time between two agreements
    std::uint8_t refine_sums = 0;         // also refine sums of floating-point numbers
    std::uint64_t first_trial_after = 0;  // calls before tuning at run time starts; 0: never
};

struct Runtime {
    Settings settings;
    Table table;  // rank 0's, like the settings
    offpath_context_h context = nullptr;
    MPI_Comm service = MPI_COMM_NULL;  // a duplicate of the world for our own use; its errors return
    std::vector<int> node_of;          // for each rank of the world, the lowest rank on its node
    MPI_Group world_group = MPI_GROUP_NULL;
    int rank = 0;
    int size = 0;
    bool threads = false;  // MPI_THREAD_MULTIPLE
};

inline std::atomic<bool> runtime_active{false};
inline bool active() {
    return runtime_active.load(std::memory_order_relaxed);
}
Runtime& runtime();

// Call after PMPI_Init: agrees on the settings and attaches. Collective over the world. It leaves the process
// inactive when there is nothing to attach to, and ends the job when a setting cannot be parsed.
void attach();

// Call before PMPI_Finalize: completes outstanding operations, prints the summary, detaches. Collective over
// the world.
void detach();

// The directory with the sockets of this node's daemon.
std::string session_directory();

// Prints one line, "offpath: ...", on stderr in a single write.
void say(const std::string& line);

}  // namespace offpath::mpi
