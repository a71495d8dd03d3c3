/* A test program of many cases. Each is a function that returns its number of wrong results; run() prints a
 * line for it. */
#pragma once
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong_cases = 0;

static inline void run(const char* name, int wrong) {
    printf("%s: %s\n", name, wrong == 0 ? "right" : "WRONG");
    if (wrong != 0) fprintf(stderr, "%s: %d wrong results\n", name, wrong);
    wrong_cases += wrong != 0;
}
#define RUN(name) run(#name, name())
