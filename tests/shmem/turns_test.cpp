// turns_test [CODE | fail | quick]: one of several programs that a script starts in turn as the same PEs
// (turns.sh). The PEs end one after the other, a tenth of a second apart (with `quick`: without a pause), so
// that some PEs are in the next program while others are still in this one. With CODE, PE 1 ends with that
// code after its shmem_finalize. `fail`: all PEs end with 9 and without shmem_finalize.
#include <offpath/context.h>
#include <shmem.h>

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "check.h"

namespace {

int pe;
bool quick;
long counter;

void ring_and_sum() {
    const int pes = shmem_n_pes();
    auto* const from = static_cast<int*>(shmem_malloc(sizeof(int)));
    *from = -1;
    shmem_barrier_all();
    shmem_int_p(from, pe, (pe + 1) % pes);
    shmem_long_atomic_add(&counter, pe + 1, 0);
    shmem_barrier_all();
    SAME(*from, (pe + pes - 1) % pes);
    if (pe == 0) SAME(counter, static_cast<long>(pes) * (pes + 1) / 2);
    shmem_free(from);
}

}  // namespace

// Takes the place of the client's own handler.
extern "C" __attribute__((visibility("default"))) offpath_status_t offpath_finalize(
    offpath_context_h context) {
    if (!quick) usleep(static_cast<useconds_t>(pe) * 100'000);
    const auto real = reinterpret_cast<decltype(&offpath_finalize)>(dlsym(RTLD_NEXT, "offpath_finalize"));
    return real(context);
}

int main(int count, char** arguments) {
    const std::string_view how = count > 1 ? arguments[1] : "";
    quick = how == "quick";
    shmem_init();
    pe = shmem_my_pe();
    ring_and_sum();
    if (how == "fail") std::_Exit(9);
    const int verdict = check::verdict();
    return count > 1 && !quick && pe == 1 ? std::atoi(arguments[1]) : verdict;
}
