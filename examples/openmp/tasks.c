/* Target tasks: nowait regions that run side by side, ordered by depend where they must be, beside host
 * tasks. */
#include <stdio.h>

enum { regions = 16, steps = 8 };

int main(void) {
    int results[regions] = {0}, chain = 1;
#pragma omp parallel
#pragma omp single
    {
        for (int i = 0; i < regions; i++)
#pragma omp target nowait map(from : results[i : 1]) firstprivate(i)
        {
            long sum = 0;
            for (long k = 0; k < 100000; k++)
                sum += k % (i + 2);
            results[i] = (int)(sum % 1000);
        }
        for (int i = 0; i < steps; i++) {
#pragma omp target nowait depend(inout : chain) map(tofrom : chain)
            chain = chain * 3 % 1000;
#pragma omp task depend(inout : chain) shared(chain)
            chain += 1;
        }
#pragma omp taskwait
    }
    int right = 0, expected = 1;
    for (int i = 0; i < regions; i++) {
        long sum = 0;
        for (long k = 0; k < 100000; k++)
            sum += k % (i + 2);
        right += results[i] == (int)(sum % 1000);
    }
    for (int i = 0; i < steps; i++)
        expected = expected * 3 % 1000 + 1;
    printf("%d of %d regions right, the chain is %s\n", right, regions,
           chain == expected ? "right" : "wrong");
    return 0;
}
