/* A target region: it runs on the device, prints there, and changes variables of the host. */
#include <omp.h>
#include <stdio.h>

int main(void) {
    int x = 41, on_host = 1;
#pragma omp target map(tofrom : x) map(from : on_host)
    {
        x++;
        on_host = omp_is_initial_device();
        printf("hello from a target region\n");
    }
    printf("x is %d, computed on the %s\n", x, on_host ? "host" : "device");
    return 0;
}
