// MPICH has no setting like Open MPI's mpi_yield_when_idle: a waiting rank keeps its core until the kernel
// takes it away, and a job with more ranks than cores then needs ten times as long. Linked into a test
// program, this gives the core to another process while UCX, through which Debian's MPICH communicates, has
// nothing to do.
#include <dlfcn.h>
#include <sched.h>

extern "C" [[gnu::visibility("default")]] unsigned ucp_worker_progress(void* worker) {
    using Progress = unsigned (*)(void*);
    static const auto progress = reinterpret_cast<Progress>(dlsym(RTLD_NEXT, "ucp_worker_progress"));
    constexpr unsigned spins = 50;  // about 5 us
    static thread_local unsigned idle;
    const unsigned events = progress(worker);
    idle = events == 0 ? idle + 1 : 0;
    if (idle > spins) sched_yield();
    return events;
}
