/* A shared library on both sides. The host is linked with its own libnorm.so, and the device's code with that
 * of the device:
 *
 *     cc -shared -fPIC library.c -o host/libnorm.so
 *     aarch64-linux-gnu-gcc -shared -fPIC library.c -o device/libnorm.so
 *     offpath-clang -fopenmp shared_library.c -o shared_library -Lhost -lnorm -Wl,-rpath,$PWD/host \
 *         -Xoffload-linker-aarch64-unknown-linux-gnu -Ldevice -Xoffload-linker-aarch64-unknown-linux-gnu
 * -lnorm \ -Xoffload-linker-aarch64-unknown-linux-gnu -rpath=/where/the/device/has/it */
#include "library.h"

#include <stdio.h>

enum { count = 1000 };

int main(void) {
    double numbers[count], device_norm = 0;
    int device_calls = 0;
    for (int i = 0; i < count; i++)
        numbers[i] = i % 10;
    const double host_norm = library_norm(numbers, count);
#pragma omp target map(to : numbers) map(from : device_norm, device_calls)
    {
        device_norm = library_norm(numbers, count / 2) + library_norm(numbers + count / 2, count / 2);
        device_calls = library_calls();
    }
    printf("host: %g after %d call, device: %g after %d calls\n", host_norm, library_calls(), device_norm,
           device_calls);
    return 0;
}
