/* Every PE writes its number to the next one. */
#include <shmem.h>
#include <stdio.h>

int main(void) {
    static int from = -1;
    shmem_init();
    const int me = shmem_my_pe(), pes = shmem_n_pes();
    shmem_int_p(&from, me, (me + 1) % pes);
    shmem_barrier_all();
    const int right = from == (me + pes - 1) % pes;
    if (!right) fprintf(stderr, "PE %d: %d arrived\n", me, from);
    shmem_finalize();
    return right ? 0 : 1;
}
