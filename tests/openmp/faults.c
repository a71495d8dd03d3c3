/* A target region that works, then one that ends badly in the way that the argument names. */
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#pragma omp declare target
static int deep(int n) {
    volatile char room[100000];
    room[0] = (char)n;
    return n > 0 ? deep(n + 1) + room[0] : 0;
}
#pragma omp end declare target

int main(int count, char** arguments) {
    const char* const what = count > 1 ? arguments[1] : "";
    int x = 1;
#pragma omp target map(tofrom : x)
    x = 2;
    printf("x %d\n", x);
    fflush(stdout);
    if (strcmp(what, "crash") == 0) {
#pragma omp target map(tofrom : x)
        *(volatile int*)8 = x;
    } else if (strcmp(what, "abort") == 0) {
#pragma omp target map(tofrom : x)
        abort();
    } else if (strcmp(what, "exit") == 0) {
#pragma omp target map(tofrom : x)
        exit(3);
    } else if (strcmp(what, "kill") == 0) {
#pragma omp target map(tofrom : x)
        kill(getpid(), SIGKILL);
    } else if (strcmp(what, "stack") == 0) {
#pragma omp target map(tofrom : x)
        x = deep(x);
    } else if (strcmp(what, "memory") == 0) {
        char* nothing = (char*)0x10000;
#pragma omp target enter data map(alloc : nothing[0 : 1L << 44])
    } else if (strcmp(what, "between") == 0) {
        /* The process on the device ends while data are there. */
        static int data[1 << 20];
        int pid = 0;
#pragma omp target enter data map(to : data)
#pragma omp target map(from : pid)
        pid = getpid();
        kill(pid, SIGKILL);
        usleep(200000);
#pragma omp target exit data map(from : data)
    } else if (strcmp(what, "between-small") == 0) {
        int pid = 0, data[1000] = {0};
#pragma omp target map(tofrom : data) map(from : pid)
        {
            pid = getpid();
            data[0] = 1;
        }
#pragma omp target enter data map(to : data)
#pragma omp target
        data[999] = 2;
        kill(pid, SIGKILL);
        usleep(200000);
#pragma omp target exit data map(from : data)
        if (data[0] != 1 || data[999] != 2) return 1;
        printf("kept\n");
        fflush(stdout);
#pragma omp target
        data[0] = 3;
    } else if (strcmp(what, "endless") == 0) {
#pragma omp target map(tofrom : x)
        {
            printf("begins\n");
            fflush(NULL);
            while (*(volatile int*)&x != 0) {
            }
        }
    } else if (strcmp(what, "endless-nowait") == 0) {
#pragma omp target map(tofrom : x) nowait
        while (*(volatile int*)&x != 0) {
        }
#pragma omp taskwait
    }
    printf("end\n");
    return 0;
}
