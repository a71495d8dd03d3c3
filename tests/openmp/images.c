/* A program whose image is large. Programs of different VERSION have different images. */
#include <stdio.h>

#ifndef VERSION
#define VERSION 1
#endif
enum { BYTES = 3 << 20 };

#pragma omp declare target
static const volatile char table[BYTES] = {VERSION, [BYTES - 1] = 2 * VERSION};
#pragma omp end declare target

int main(void) {
    int first = 0, last = 0;
#pragma omp target map(from : first, last)
    {
        first = table[0];
        last = table[BYTES - 1];
    }
    printf("%d %d\n", first, last);
    return 0;
}
