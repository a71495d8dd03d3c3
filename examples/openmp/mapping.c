/* Data that stays on the device: enter and exit data, update, structures with pointers, sections of arrays,
 * declare-target variables, memory of omp_target_alloc and associated memory. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct List {
    int length;
    double* values;
};

#pragma omp declare target
int calls = 100;
static int count_call(void) {
    return ++calls;
}
#pragma omp end declare target

int main(void) {
    struct List list = {1000, malloc(1000 * sizeof(double))};
    for (int i = 0; i < list.length; i++)
        list.values[i] = i;

#pragma omp target enter data map(to : list) map(to : list.values[0 : list.length])
#pragma omp target
    for (int i = 0; i < list.length; i++)
        list.values[i] += 0.5;
#pragma omp target update from(list.values[10 : 5])
    printf("updated %g, not updated %g\n", list.values[12], list.values[20]);
#pragma omp target exit data map(from : list.values[0 : list.length]) map(release : list)
    printf("after exit data %g\n", list.values[999]);

    int first = 0, second = 0;
#pragma omp target map(from : first)
    first = count_call();
#pragma omp target map(from : second)
    second = count_call();
    printf("calls %d and %d, on the host %d\n", first, second, calls);
    calls = 7;
#pragma omp target update to(calls)
#pragma omp target map(from : first)
    first = count_call();
    printf("after an update %d\n", first);

    const int device = omp_get_default_device();
    int source[64], back[64];
    for (int i = 0; i < 64; i++)
        source[i] = i * i;
    int* memory = omp_target_alloc(sizeof source, device);
    omp_target_memcpy(memory, source, sizeof source, 0, 0, device, omp_get_initial_device());
#pragma omp target is_device_ptr(memory)
    for (int i = 0; i < 64; i++)
        memory[i] = -memory[i];
    omp_target_memcpy(back, memory, sizeof back, 0, 0, omp_get_initial_device(), device);
    printf("through device memory %d\n", back[9]);
    memset(source, 0, sizeof source);
    omp_target_associate_ptr(source, memory, sizeof source, 0, device);
#pragma omp target update from(source)
    printf("associated %d\n", source[8]);
    omp_target_disassociate_ptr(source, device);
    omp_target_free(memory, device);
    free(list.values);
    return 0;
}
