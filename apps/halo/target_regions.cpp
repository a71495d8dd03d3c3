// The target regions of libhalo-target.so. The device has copies of both fields, and keeps up to date only
// what the boundary depends on. That is the boundary itself, the halo, and the layer next to the boundary.
// The halo comes from the neighbours' devices, and the layer from the host with each step.
#include "halo/target_regions.h"

#include <mpi.h>
#include <omp.h>

#include <chrono>

// The kernel that the other variants use, for both architectures of devices.
#pragma omp begin declare target
#include "halo/stencil.cpp"
#pragma omp end declare target

#define HALO_EXPORT __attribute__((visibility("default")))

namespace {

using halo::Layer;
using halo::Layout;
using halo::target::Memory;
using halo::target::Place;

// The messages of a step, inside a region. A message to one side arrives from the opposite side.
class Exchange {
  public:
    Exchange(const Place& place, double* faces, double* received)
        : place_(place), faces_(faces), received_(received) {}

    void receive() {
        for_sides([&](int dim, int side, double*, double* in, int numbers) {
            MPI_Irecv(in, numbers, MPI_DOUBLE, place_.neighbour[dim][side], 2 * dim + 1 - side,
                      MPI_COMM_WORLD, &requests_[count_++]);
        });
    }
    void send() {
        for_sides([&](int dim, int side, double* out, double*, int numbers) {
            MPI_Isend(out, numbers, MPI_DOUBLE, place_.neighbour[dim][side], 2 * dim + side, MPI_COMM_WORLD,
                      &requests_[count_++]);
        });
    }
    void wait() { MPI_Waitall(count_, requests_, MPI_STATUSES_IGNORE); }

  private:
    template <typename Visit>
    void for_sides(Visit&& visit) {
        const Layout& layout = place_.layout;
        for (int dim = 0; dim < 3; ++dim) {
            for (int side = 0; side < 2; ++side) {
                if (!layout.has(dim, side)) continue;
                const std::size_t at = layout.face_begin(dim, side);
                visit(dim, side, faces_ + at, received_ + at, static_cast<int>(layout.face(dim)));
            }
        }
    }

    const Place& place_;
    double *const faces_, *const received_;
    MPI_Request requests_[12];
    int count_ = 0;
};

struct Sizes {
    explicit Sizes(const Memory& memory)
        : field(memory.place->layout.numbers()), faces(memory.place->layout.face_numbers()) {}
    const std::size_t field, faces;
};

}  // namespace

extern "C" {

HALO_EXPORT int halo_target_check() {
    int result = halo::target::no_device;
#pragma omp target map(from : result)
    {
        int joined = 0;
        MPI_Initialized(&joined);
        result = joined != 0 ? 0 : halo::target::no_mpi;
        if (omp_is_initial_device() != 0) result = halo::target::no_device;
    }
    return result;
}

HALO_EXPORT void halo_target_enter(const Memory& memory) {
    const Place* const place = memory.place;
    double *const first = memory.fields[0], *const second = memory.fields[1], *const inner = memory.inner,
                  *const faces = memory.faces, *const received = memory.received,
                  *const seconds = memory.seconds;
    const Sizes n(memory);
#pragma omp target enter data map(to : place[0 : 1], seconds[0 : 1])                             \
    map(alloc : first[0 : n.field], second[0 : n.field], inner[0 : n.faces], faces[0 : n.faces], \
            received[0 : n.faces])
}

HALO_EXPORT void halo_target_exit(const Memory& memory) {
    const Place* const place = memory.place;
    double *const first = memory.fields[0], *const second = memory.fields[1], *const inner = memory.inner,
                  *const faces = memory.faces, *const received = memory.received,
                  *const seconds = memory.seconds;
    const Sizes n(memory);
#pragma omp target exit data map(delete : place[0 : 1], seconds[0 : 1], first[0 : n.field],       \
                                     second[0 : n.field], inner[0 : n.faces], faces[0 : n.faces], \
                                     received[0 : n.faces])
}

HALO_EXPORT void halo_target_set(const Memory& memory) {
    double *const first = memory.fields[0], *const second = memory.fields[1];
    const Sizes n(memory);
#pragma omp target update to(first[0 : n.field], second[0 : n.field])
}

HALO_EXPORT void halo_target_resume(const Memory& memory, int from) {
    const Place* const place = memory.place;
    double *const old = memory.fields[from], *const faces = memory.faces, *const received = memory.received;
    const Sizes n(memory);
#pragma omp target map(alloc : place[0 : 1], old[0 : n.field]) \
    map(always, to : faces[0 : n.faces], received[0 : n.faces])
    {
        halo::unpack(place->layout, Layer::face, faces, old);
        halo::unpack(place->layout, Layer::halo, received, old);
    }
}

HALO_EXPORT void halo_target_leave(const Memory& memory) {
    double* const received = memory.received;
    const Sizes n(memory);
#pragma omp target update from(received[0 : n.faces])
}

HALO_EXPORT void halo_target_step(const Memory& memory, int from, void (*interior)(void*), void* context) {
    const Place* const place = memory.place;
    double *const old = memory.fields[from], *const next = memory.fields[1 - from],
                  *const inner = memory.inner, *const faces = memory.faces, *const received = memory.received,
                  *const seconds = memory.seconds;
    const Sizes n(memory);
    // Thread 0 starts the region at once, then sleeps until it ends, and leaves the core to the interior.
    // With `target nowait`, a helper thread would have to get the core first, and LLVM's thread that waits
    // for it would keep the core busy.
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 1 || omp_get_num_threads() == 1) interior(context);
        if (omp_get_thread_num() == 0) {
#pragma omp target map(alloc : place[0 : 1], old[0 : n.field], next[0 : n.field], received[0 : n.faces]) \
    map(always, to : inner[0 : n.faces]) map(always, from : faces[0 : n.faces], seconds[0 : 1])
            {
                Exchange messages(*place, faces, received);
                messages.receive();
                const auto begin = std::chrono::steady_clock::now();
                halo::unpack(place->layout, Layer::inner, inner, old);
                halo::step_boundary(place->layout, old, next);
                halo::pack(place->layout, Layer::face, next, faces);
                *seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
                messages.send();
                messages.wait();
                halo::unpack(place->layout, Layer::halo, received, next);
            }
        }
    }
}
}
