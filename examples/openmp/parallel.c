/* Threads on the device: a parallel loop, teams, simd and reductions, each against the sum that is known. */
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    const long n = 1 << 20;
    double* a = malloc((size_t)n * sizeof *a);
    double sum = 0, largest = -1;
    long threads = 0;
    for (long i = 0; i < n; i++)
        a[i] = (double)(i % 1000);
#pragma omp target data map(tofrom : a[0 : n])
    {
#pragma omp target parallel for
        for (long i = 0; i < n; i++)
            a[i] = 2 * a[i] + 1;
#pragma omp target teams distribute parallel for simd reduction(+ : sum) reduction(max : largest)
        for (long i = 0; i < n; i++) {
            sum += a[i];
            largest = a[i] > largest ? a[i] : largest;
        }
#pragma omp target parallel reduction(+ : threads) num_threads(3)
        threads += 1;
    }
    double expected = 0;
    for (long i = 0; i < n; i++)
        expected += 2 * (double)(i % 1000) + 1;
    printf("sum %s, largest %g, threads %ld\n", sum == expected ? "right" : "wrong", largest, threads);
    printf("last element %g\n", a[n - 1]);
    free(a);
    return 0;
}
