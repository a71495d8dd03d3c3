// The calls of shmem.h that start and end the library, and its queries.
#include "calls/definition.h"
#include "collectives/collectives.h"
#include "core.h"
#include "device_loss.h"
#include "job_end.h"
#include "life.h"
#include "teams/team.h"
#include "world.h"

#include <fmt/format.h>
#include <shmem.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace offpath::shmem;

namespace {

static_assert(thread_single == SHMEM_THREAD_SINGLE && thread_funneled == SHMEM_THREAD_FUNNELED &&
              thread_serialized == SHMEM_THREAD_SERIALIZED && thread_multiple == SHMEM_THREAD_MULTIPLE);
static_assert(signal_set == SHMEM_SIGNAL_SET && signal_add == SHMEM_SIGNAL_ADD);

void end() {
    if (!running()) return;
    quiet(default_context());
    // The device may be lost before, or during, the barrier in stop().
    if (all_pes_are_near()) sync_team(world_team());
    close_teams();
    stop();
}

void begin(int threads) {
    start(threads);
    open_teams();
    // A program that exits with 0 without shmem_finalize is finalised here. One that fails must not wait for
    // the others.
    on_exit([](int status, void*) { status == 0 ? end() : void(); }, nullptr);
}

}  // namespace

DEFINE(void, shmem_init, (void)) {
    begin(thread_single);
}

DEFINE(int, shmem_init_thread, (int requested, int* provided)) {
    if (requested < thread_single || requested > thread_multiple)
        fail(
            fmt::format("thread level {}: {} to {} are accepted", requested, thread_single, thread_multiple));
    begin(requested);
    if (provided != nullptr) *provided = requested;
    return 0;
}

DEFINE(void, shmem_query_thread, (int* provided)) {
    *provided = world.thread_level;
}

DEFINE(void, shmem_finalize, (void)) {
    end();
}

DEFINE(void, shmem_global_exit, (int status)) {
    end_job(status);
}

DEFINE(void, start_pes, (int)) {
    if (!running()) begin(thread_single);
}

DEFINE(void, shmem_info_get_version, (int* major, int* minor)) {
    *major = SHMEM_MAJOR_VERSION;
    *minor = SHMEM_MINOR_VERSION;
}

DEFINE(void, shmem_info_get_name, (char* name)) {
    std::memcpy(name, SHMEM_VENDOR_STRING, sizeof SHMEM_VENDOR_STRING);
}

DEFINE(int, shmem_pe_accessible, (int pe)) {
    return pe >= 0 && pe < n_pes() ? 1 : 0;
}

DEFINE(int, shmem_addr_accessible, (const void* address, int pe)) {
    return shmem_pe_accessible(pe) != 0 && is_symmetric(address, 1) ? 1 : 0;
}

DEFINE(void*, shmem_ptr, (const void* dest, int pe)) {
    return is_symmetric(dest, 1) ? pointer(dest, pe) : nullptr;
}
