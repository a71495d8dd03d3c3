// libhalo-target.so: the device's part of --variant target, OpenMP target regions that call MPI.
//
// clang makes this library, once for each MPI; the program may be GCC's. It is loaded before MPI_Init, which
// joins the devices of all ranks if regions call MPI. One thread calls these functions, between MPI_Init and
// MPI_Finalize. A region that fails ends the process, with a message of LLVM's.
#pragma once

#include <cstdint>

#include "halo/stencil.h"

namespace halo::target {

// What the device is told once. All arrays have the size that the layout says.
struct Place {
    Layout layout;
    std::int32_t neighbour[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
};

// The program's memory, of which the device has a copy from halo_target_enter to halo_target_exit.
struct Memory {
    const Place* place = nullptr;
    double* fields[2] = {};
    double* inner = nullptr;     // the layer of that name in the old field, host to device
    double* faces = nullptr;     // the boundary of the new field, device to host and to other devices
    double* received = nullptr;  // its neighbours', on the device alone
    double* seconds = nullptr;   // that the device has computed boundaries
};

constexpr int no_device = 1;
constexpr int no_mpi = 2;

}  // namespace halo::target

extern "C" {

// 0: a device runs regions, and they may call MPI. Else no_device or no_mpi.
int halo_target_check();
void halo_target_enter(const halo::target::Memory& memory);
void halo_target_exit(const halo::target::Memory& memory);
// The device gets both fields of the host, halo included.
void halo_target_set(const halo::target::Memory& memory);
// Starts a step on the device, from field `from` to the other one, and returns. Its inputs may change, and
// its outputs are there, when halo_target_wait returns.
void halo_target_start(const halo::target::Memory& memory, int from);
void halo_target_wait();
}
