// libhalo-target.so: the device's part of --variant target. It has OpenMP target regions that call MPI.
//
// clang compiles this library, once for each MPI. GCC may compile the program. The program loads the library
// before MPI_Init, which joins the devices of all ranks if regions call MPI. One thread calls these
// functions, between MPI_Init and MPI_Finalize. If a region fails, LLVM prints a message and ends the
// process.
#pragma once

#include <cstdint>

#include "halo/stencil.h"

namespace halo::target {

// What the device needs to know about the block. The layout determines the sizes of all arrays.
struct Place {
    Layout layout;
    std::int32_t neighbour[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
};

// The program's memory. The device has a copy of it from halo_target_enter to halo_target_exit.
struct Memory {
    const Place* place = nullptr;
    double* fields[2] = {};
    double* inner = nullptr;     // the old field's inner layer, from host to device
    double* faces = nullptr;     // the new field's boundary, from device to host and to other devices
    double* received = nullptr;  // the neighbours' boundaries, from other devices
    double* seconds = nullptr;   // time in which the device computed boundaries
};

constexpr int no_device = 1;
constexpr int no_mpi = 2;

}  // namespace halo::target

extern "C" {

// Returns 0 if a device runs regions and they may call MPI. Otherwise returns no_device or no_mpi.
int halo_target_check();
void halo_target_enter(const halo::target::Memory& memory);
void halo_target_exit(const halo::target::Memory& memory);
// Copies both fields of the host to the device, halo included.
void halo_target_set(const halo::target::Memory& memory);
// The host has computed steps. Copies what the device's next step from field `from` depends on, from `faces`
// and `received`: the field's boundary and its halo.
void halo_target_resume(const halo::target::Memory& memory, int from);
// The host is to compute steps. Copies the halo that the device's last step has received to `received`.
void halo_target_leave(const halo::target::Memory& memory);
// Computes a step from field `from` to the other one: the boundary and its exchange in a region on the
// device, and meanwhile the interior by interior(context), on another thread of the host. Returns when both
// have ended.
void halo_target_step(const halo::target::Memory& memory, int from, void (*interior)(void*), void* context);
}
