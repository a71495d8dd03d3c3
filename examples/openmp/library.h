/* A library that the host and the device have each for themselves (library.c). */
#ifndef EXAMPLE_LIBRARY_H
#define EXAMPLE_LIBRARY_H

#pragma omp begin declare target
/* The sum of the squares of `count` numbers. */
double library_norm(const double* numbers, int count);
/* How often library_norm was called in this process. */
int library_calls(void);
#pragma omp end declare target

#endif
