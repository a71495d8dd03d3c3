/* Which devices there are, which one runs a region, and memory of several devices. */
#include <omp.h>
#include <stdio.h>

int main(void) {
    const int devices = omp_get_num_devices(), host = omp_get_initial_device();
    printf("%d devices, default %d\n", devices, omp_get_default_device());
    fflush(stdout);
    int on_host = 0;
#pragma omp target map(tofrom : on_host)
    {
        on_host = omp_is_initial_device();
        printf("the default runs this\n");
        fflush(NULL);
    }
    if (on_host) printf("on the host\n");
    for (int i = 0; i < devices && !on_host; i++) {
        int x[1000], there = 0;
        for (int k = 0; k < 1000; k++)
            x[k] = k;
#pragma omp target enter data map(to : x) device(i)
        for (int k = 0; k < devices; k++)
            there += omp_target_is_present(x, k);
#pragma omp target device(i)
        {
            x[7] += i;
            printf("region of %d\n", i);
            fflush(NULL);
        }
#pragma omp target exit data map(from : x) device(i)
        printf("on %d devices at a time, %d\n", there, x[7]);
        fflush(stdout);
    }
    if (devices < 2 || on_host) return 0;
    int values[2] = {11, 22}, back[2] = {0, 0};
    int* const first = omp_target_alloc(sizeof values, 0);
    int* const second = omp_target_alloc(sizeof values, 1);
    int wrong = omp_target_memcpy(first, values, sizeof values, 0, 0, 0, host);
    wrong += omp_target_memcpy(second, first, sizeof values, 0, 0, 1, 0);
    wrong += omp_target_memcpy(back, second, sizeof values, 0, 0, host, 1);
    omp_target_free(first, 0);
    omp_target_free(second, 1);
    int a = 0, b = 0;
#pragma omp target map(tofrom : a) device(0) nowait
    a = 1;
#pragma omp target map(tofrom : b) device(1) nowait
    b = 2;
#pragma omp taskwait
    printf("from device to device %d %d, side by side %d %d, errors %d\n", back[0], back[1], a, b, wrong);
    return 0;
}
