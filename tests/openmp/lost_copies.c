/* A copy between host and device that fails, in the way that the argument names: half of the program's array
   is not there, or cannot be written. The program must end with an error, whatever comes after the copy. */
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { n = 4 << 20 };

static char* array_with(int protection) {
    char* const array = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(array, 1, n);
    mprotect(array + n / 2, n / 2, protection);
    return array;
}

int main(int count, char** arguments) {
    const char* const way = count > 1 ? arguments[1] : "";
    char* const gone = array_with(PROT_NONE);
    char* const kept = array_with(PROT_READ);
    char* const whole = array_with(PROT_READ | PROT_WRITE);
    int x = 1;
    if (strcmp(way, "to") == 0) {
#pragma omp target map(to : gone[0 : n]) map(tofrom : x)
        x = gone[5];
    } else if (strcmp(way, "from") == 0) {
#pragma omp target map(from : kept[0 : n])
        kept[5] = 2;
    } else if (strcmp(way, "nowait") == 0) {
#pragma omp target map(to : gone[0 : n]) map(tofrom : x) nowait
        x = gone[5];
#pragma omp taskwait
    } else if (strcmp(way, "depend") == 0) {
#pragma omp target enter data map(to : gone[0 : n]) depend(out : gone[0]) nowait
#pragma omp target map(tofrom : x) depend(inout : gone[0]) nowait
        x = 3;
#pragma omp taskwait
    } else if (strcmp(way, "enter") == 0) {
#pragma omp target enter data map(to : gone[0 : n])
    } else if (strcmp(way, "exit") == 0) {
#pragma omp target enter data map(alloc : kept[0 : n])
#pragma omp target exit data map(from : kept[0 : n])
    } else if (strcmp(way, "data") == 0) {
#pragma omp target data map(to : whole[0 : n]) map(from : kept[0 : n])
        {
#pragma omp target map(tofrom : x)
            x = 3;
        }
    } else if (strcmp(way, "update-to") == 0) {
#pragma omp target enter data map(alloc : gone[0 : n])
#pragma omp target update to(gone[0 : n])
    } else if (strcmp(way, "update-from") == 0) {
#pragma omp target enter data map(alloc : kept[0 : n])
#pragma omp target update from(kept[0 : n]) nowait
#pragma omp taskwait
    } else if (strncmp(way, "nowhere", strlen("nowhere")) == 0) {
        // The device has no memory there. The region before has nothing to do with it.
        const int host = omp_get_initial_device(), device = omp_get_default_device();
        void* const nowhere = (void*)4096;
        const size_t bytes = strstr(way, "small") != NULL ? 8 : n;
#pragma omp target map(tofrom : x)
        x = 3;
        if ((strstr(way, "to") != NULL ? omp_target_memcpy(nowhere, whole, bytes, 0, 0, device, host)
                                       : omp_target_memcpy(whole, nowhere, bytes, 0, 0, host, device)) != 0)
            return 1;
    } else {
        const int host = omp_get_initial_device(), device = omp_get_default_device();
        void* const there = omp_target_alloc(n, device);
        const int result = strcmp(way, "memcpy-to") == 0
                               ? omp_target_memcpy(there, gone, n, 0, 0, device, host)
                               : omp_target_memcpy(kept, there, n, 0, 0, host, device);
        if (result != 0) return 1;
    }
    printf("went on with x %d\n", x);
    return 0;
}
