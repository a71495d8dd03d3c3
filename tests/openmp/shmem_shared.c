/* Memory of the symmetric heap is mapped by the device, and not copied. */
#include <shmem.h>
#include <stdio.h>

enum { n = 100000 };

int main(void) {
    shmem_init();
    int* const x = shmem_malloc(n * sizeof(int));
    int wrong = 0;
    for (int i = 0; i < n; i++)
        x[i] = i;
    for (int round = 0; round < 3; round++)
#pragma omp target map(tofrom : x[0 : n])
        for (int i = 0; i < n; i++)
            x[i] += 2;
    /* What the region has stored is what other PEs get. */
    for (int i = 0; i < n; i += 999)
        wrong += shmem_int_g(&x[i], shmem_my_pe()) != i + 6;
    shmem_free(x);
    printf("wrong results: %d\n", wrong);
    shmem_finalize();
    return 0;
}
