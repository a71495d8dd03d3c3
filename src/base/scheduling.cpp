#include "base/scheduling.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace offpath {
namespace {

// The kernel's structure, which the C library of Debian 12 does not declare.
struct SchedulingAttributes {
    std::uint32_t size = sizeof(SchedulingAttributes);
    std::uint32_t policy = SCHED_OTHER;
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t runtime = 0, deadline = 0, period = 0;
};
static_assert(sizeof(SchedulingAttributes) == 48);

constexpr std::uint64_t slice_ns = 100'000;  // the smallest that the kernel accepts

}  // namespace

void ask_for_short_slices() {
    if (sched_getscheduler(0) != SCHED_OTHER) return;  // another policy was chosen for this process
    SchedulingAttributes attributes;
    attributes.nice = getpriority(PRIO_PROCESS, 0);
    attributes.runtime = slice_ns;
    // Older kernels ignore the time or refuse the call; either is harmless.
    (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace offpath
