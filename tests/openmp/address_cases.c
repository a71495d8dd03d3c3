/* Device addresses in clauses of OpenMP 5.1. */
#include "cases.h"

static int scalar(void) {
    int x = 10, got = 0;
    int* there = NULL;
#pragma omp target enter data map(to : x)
#pragma omp target data use_device_addr(x)
    {
        int* const device = &x;
#pragma omp target map(from : got, there) has_device_addr(x)
        {
            there = &x;
            got = x;
            x = 11;
        }
        if (there != device) got = -1;
    }
#pragma omp target exit data map(from : x)
    return got != 10 || x != 11;
}

static int whole_array(void) {
    int numbers[64], got = 0;
    for (int i = 0; i < 64; ++i)
        numbers[i] = i;
#pragma omp target enter data map(to : numbers)
#pragma omp target data use_device_addr(numbers)
#pragma omp target map(from : got) has_device_addr(numbers)
    {
        got = numbers[63];
        numbers[63] = 5;
    }
#pragma omp target exit data map(from : numbers)
    return got != 63 || numbers[63] != 5 || numbers[62] != 62;
}

static int again(void) {
    double x = 0.5;
    int wrong = 0;
#pragma omp target enter data map(to : x)
    for (int i = 0; i < 100; ++i) {
        double got = 0;
#pragma omp target data use_device_addr(x)
#pragma omp target map(from : got) has_device_addr(x)
        got = x += 1;
        wrong += got != 0.5 + i + 1;
    }
#pragma omp target exit data map(from : x)
    return wrong + (x != 100.5);
}

#pragma omp declare target
int of_image = 3;
#pragma omp end declare target

static int of_the_image(void) {
    int got = 0;
#pragma omp target data use_device_addr(of_image)
#pragma omp target map(from : got) has_device_addr(of_image)
    got = ++of_image;
#pragma omp target update from(of_image)
    return got != 4 || of_image != 4;
}

int main(void) {
    RUN(scalar);
    RUN(whole_array);
    RUN(again);
    RUN(of_the_image);
    return wrong_cases != 0;
}
