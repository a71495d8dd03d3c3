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
#include <exception>
#include <string>
#include <type_traits>
#include <vector>

#include "base/codes.h"
#include "selection.h"

namespace offpath::mpi {

// Settings that all ranks share: those of rank 0's environment. Trivially copyable.
struct Settings {
    Selection selection;
    std::uint8_t on = 0;
    std::uint8_t verbose = 1;       // 0: errors only; 1: the summary; 2: every decision
    std::uint8_t summary_file = 0;  // rank 0 writes one (summary_file.h)
};

struct Runtime {
    Settings settings;
    offpath_context_h context = nullptr;
    MPI_Comm service = MPI_COMM_NULL;  // the world's ranks, for our own use; its errors return
    std::vector<int> node_of;          // for each rank of the world, the lowest rank on its node
    MPI_Group world_group = MPI_GROUP_NULL;
    int rank = 0;
    int size = 0;
    bool threads = false;        // MPI_THREAD_MULTIPLE
    bool wanted_device = false;  // all ranks have tried to attach
    bool offloaded = false;      // rank 0, in MPI_Finalize: a part's summary has found offloaded work
};

inline std::atomic<bool> runtime_active{false};
inline bool active() {
    return runtime_active.load(std::memory_order_relaxed);
}
Runtime& runtime();

// Prints one line, "offpath: ...", on stderr in a single write. It informs; warnings and errors have a code.
void say(const std::string& line);
void warn(Code code, const std::string& line);

// What `read` returns on rank 0, on all ranks. Collective over the world, in MPI_Init. Ranks decide alone
// later, so they must start from the same settings. It ends the job when `read` throws.
template <typename T>
T settings_of_rank_0(T (*read)()) {
    static_assert(std::is_trivially_copyable_v<T>);
    T settings;
    if (runtime().rank == 0) {
        try {
            settings = read();
        } catch (const std::exception& error) {
            warn(Code::setting, error.what());
            PMPI_Abort(MPI_COMM_WORLD, 2);
        }
    }
    PMPI_Bcast(&settings, sizeof settings, MPI_BYTE, 0, MPI_COMM_WORLD);
    return settings;
}

// Call after PMPI_Init: agrees on the settings and attaches. Collective over the world. It leaves the process
// inactive when there is nothing to attach to, and ends the job when a setting cannot be parsed.
void attach();

// Call before PMPI_Finalize: completes outstanding operations, prints the summary, detaches. Collective over
// the world.
void detach();

// Whether all ranks share a node. Once attached.
bool is_on_one_node();

// The directory with the sockets of this node's daemon.
std::string session_directory();

}  // namespace offpath::mpi
