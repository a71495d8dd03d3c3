// Memory that host and device share: of llvm_omp_target_alloc_shared, and what a map shares instead of
// copying. Where a copy can be told from shared memory, each case says which of them is right.
#include "cases.h"

#include <memory>

extern "C" {
void* llvm_omp_target_alloc_host(size_t bytes, int device);
void* llvm_omp_target_alloc_shared(size_t bytes, int device);
void llvm_omp_target_free_host(void* address, int device);
void llvm_omp_target_free_shared(void* address, int device);
}

namespace {

constexpr int n = 10000;

struct Memory {
    int* const x = static_cast<int*>(llvm_omp_target_alloc_shared(n * sizeof(int), 0));
    ~Memory() { llvm_omp_target_free_shared(x, 0); }
    int wrong(int factor, int begin = 0, int end = n) const {
        int count = 0;
        for (int i = begin; i < end; i++)
            count += x[i] != factor * i;
        return count;
    }
    void fill(int factor) {
        for (int i = 0; i < n; i++)
            x[i] = factor * i;
    }
};

int memory_of_both() {
    Memory memory;
    int* const x = memory.x;
    memory.fill(1);
#pragma omp target is_device_ptr(x)
    for (int i = 0; i < n; i++)
        x[i] *= 2;
    int wrong = memory.wrong(2);
    memory.fill(3);
#pragma omp target is_device_ptr(x)
    for (int i = 0; i < n; i++)
        x[i] *= 2;
    return wrong + memory.wrong(6);
}

int memory_of_the_host() {
    int* const x = static_cast<int*>(llvm_omp_target_alloc_host(n * sizeof(int), 0));
    for (int i = 0; i < n; i++)
        x[i] = i;
#pragma omp target is_device_ptr(x)
    for (int i = 0; i < n; i++)
        x[i]++;
    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += x[i] != i + 1;
    llvm_omp_target_free_host(x, 0);
    return wrong;
}

// The host sees the device's stores at once, and the device the host's.
int seen_from_both_sides() {
    Memory memory;
    int* const x = memory.x;
    memory.fill(1);
    int wrong = 0;
#pragma omp target data map(to : x[0 : n])
    {
#pragma omp target
        x[5] = 77;
        wrong += x[5] != 77;
        x[6] = 88;
#pragma omp target map(tofrom : wrong)
        wrong += x[6] != 88;
    }
    return wrong;
}

int parts_of_it() {
    Memory memory;
    int* const x = memory.x;
    memory.fill(1);
#pragma omp target map(tofrom : x[2000 : 5000])
    for (int i = 2000; i < 7000; i++)
        x[i] *= 4;
    return memory.wrong(1, 0, 2000) + memory.wrong(4, 2000, 7000) + memory.wrong(1, 7000);
}

int counts_and_updates() {
    Memory memory;
    int* const x = memory.x;
    int wrong = 0;
    memory.fill(1);
#pragma omp target enter data map(to : x[0 : n])
#pragma omp target enter data map(to : x[0 : n])
#pragma omp target exit data map(release : x[0 : n])
    wrong += !omp_target_is_present(x, 0);
#pragma omp target
    x[0] = 1;
#pragma omp target update from(x[0 : 100])
    wrong += x[0] != 1;
    x[0] = 0;
#pragma omp target update to(x[0 : 100])
#pragma omp target map(always, tofrom : x[0 : n])
    for (int i = 0; i < n; i++)
        x[i] *= 2;
#pragma omp target exit data map(from : x[0 : n])
    return wrong + memory.wrong(2) + omp_target_is_present(x, 0);
}

// What is private to a region must not be shared.
int private_arrays() {
    Memory memory;
    memory.fill(1);
    auto& x = *reinterpret_cast<int(*)[n]>(memory.x);
    int sum = 0;
#pragma omp target firstprivate(x) map(tofrom : sum)
    for (int i = 0; i < n; i++) {
        sum += x[i] == i;
        x[i] = -1;
    }
    return n - sum + memory.wrong(1);
}

struct List {
    int length, pad[2000];
    int* values;
};

// A pointer that is attached on the device stays what it is on the host.
int pointers_in_it() {
    auto* const list = static_cast<List*>(llvm_omp_target_alloc_shared(sizeof(List), 0));
    const auto values = std::make_unique<int[]>(n);
    list->length = n;
    list->values = values.get();
    int wrong = 0;
    for (int i = 0; i < n; i++)
        values[static_cast<size_t>(i)] = i;
#pragma omp target data map(tofrom : list[0 : 1]) map(tofrom : list->values[0 : n])
    {
#pragma omp target
        for (int i = 0; i < list->length; i++)
            list->values[i] += 3;
        wrong += list->values != values.get();
    }
    wrong += list->values != values.get() || list->length != n;
    for (int i = 0; i < n; i++)
        wrong += values[static_cast<size_t>(i)] != i + 3;
    llvm_omp_target_free_shared(list, 0);
    return wrong;
}

// The device keeps the bytes. Memory that the program later has at the same address is another.
int freed_while_mapped() {
    auto* const x = static_cast<int*>(llvm_omp_target_alloc_shared(n * sizeof(int), 0));
    for (int i = 0; i < n; i++)
        x[i] = i;
    int sum = 0;
#pragma omp target enter data map(to : x[0 : n])
    llvm_omp_target_free_shared(x, 0);
#pragma omp target map(tofrom : sum)
    for (int i = 0; i < n; i++)
        sum += x[i] == i;
#pragma omp target exit data map(delete : x[0 : n])
    Memory memory;
    memory.fill(5);
    int* const again = memory.x;
#pragma omp target map(tofrom : again[0 : n])
    for (int i = 0; i < n; i++)
        again[i] *= 2;
    return n - sum + memory.wrong(10);
}

// Blocks that were freed are given again, also after the end of one that program and device do not share.
int blocks_are_given_again() {
    omp_target_free(omp_target_alloc(8 << 20, 0), 0);
    void* const first = omp_target_alloc(1 << 20, 0);
    omp_target_free(first, 0);
    int others = 0;
    for (int i = 0; i < 100; i++) {
        void* const block = omp_target_alloc(1 << 20, 0);
        others += block != first;
        omp_target_free(block, 0);
    }
    return others;
}

// Maps `x` on every device in turn, and is what a run that counts copied bytes does.
int on_every_device() {
    Memory memory;
    int* const x = memory.x;
    memory.fill(1);
    int factor = 1;
    for (int device = 0; device < omp_get_num_devices(); device++) {
        factor *= 2;
#pragma omp target enter data map(to : x[0 : n]) device(device)
    }
    for (int device = 0; device < omp_get_num_devices(); device++)
#pragma omp target device(device)
        for (int i = 0; i < n; i++)
            x[i] *= 2;
    for (int device = 0; device < omp_get_num_devices(); device++) {
#pragma omp target exit data map(from : x[0 : n]) device(device)
    }
    return memory.wrong(factor);
}

}  // namespace

int main(int count, char**) {
    if (count > 1) {
        RUN(on_every_device);
        return wrong_cases != 0;
    }
    RUN(memory_of_both);
    RUN(memory_of_the_host);
    RUN(seen_from_both_sides);
    RUN(parts_of_it);
    RUN(counts_and_updates);
    RUN(private_arrays);
    RUN(pointers_in_it);
    RUN(freed_while_mapped);
    RUN(on_every_device);
    RUN(blocks_are_given_again);
    return wrong_cases != 0;
}
