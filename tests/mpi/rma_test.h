// What the parts of rma_test share: this rank, a window, and the parts.
#pragma once

#include "check.h"
#include "window_memory.h"

namespace rma_test {

inline int me = 0;
inline int ranks = 1;
inline bool by_host = false;  // the host's MPI may serve windows

inline MPI_Win create(WindowMemory<int>& memory, int disp_unit = sizeof(int)) {
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_create(memory.data(), static_cast<MPI_Aint>(memory.size() * sizeof(int)), disp_unit,
                   MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    return win;
}

// rma_updates.cpp
void test_updates();
void test_pairs();
void test_atomics();
// rma_requests.cpp
void test_requests();
void test_packed_requests();
void test_failed_request();
// rma_windows.cpp
void test_dynamic();
void test_windows();
void test_flavors();
void test_freed_windows();
void test_errors();

}  // namespace rma_test
