// Unified shared memory: regions use the program's memory without any map.
#include "cases.h"

#include <list>
#include <string>
#include <vector>

#pragma omp requires unified_shared_memory

namespace {

constexpr int n = 100000;

struct Node {
    int value;
    Node* next;
};

#pragma omp declare target
int shared_counter = 5;
int shared_table[1000];
#pragma omp end declare target
int plain_global[1000];

int heap_and_stack() {
    std::vector<int> heap(n, 1);
    int stack[100], *const data = heap.data();
    for (int i = 0; i < 100; ++i)
        stack[i] = i;
    for (int round = 0; round < 3; ++round) {
        int* const there = stack;
#pragma omp target
        for (int i = 0; i < n; ++i)
            data[i] += there[i % 100];
        for (int& x : stack)
            x += 1;
    }
    int wrong = 0;
    for (int i = 0; i < n; ++i)
        wrong += heap[static_cast<std::size_t>(i)] != 1 + 3 * (i % 100) + 3;
    return wrong;
}

int linked_list() {
    std::vector<Node*> nodes;
    Node* first = nullptr;
    for (int i = 0; i < 1000; ++i)
        nodes.push_back(first = new Node{i, first});
#pragma omp target
    for (Node* node = first; node != nullptr; node = node->next)
        node->value *= 2;
    int wrong = 0;
    for (int i = 0; i < 1000; ++i) {
        wrong += nodes[static_cast<std::size_t>(i)]->value != 2 * i;
        delete nodes[static_cast<std::size_t>(i)];
    }
    return wrong;
}

int globals() {
    int wrong = 0;
    int* plain = plain_global;
    for (int i = 0; i < 1000; ++i)
        plain_global[i] = shared_table[i] = i;
    shared_counter = 7;
#pragma omp target
    {
        for (int i = 0; i < 1000; ++i)
            shared_table[i] += plain[i] + shared_counter;
        ++shared_counter;
    }
    for (int i = 0; i < 1000; ++i)
        wrong += shared_table[i] != 2 * i + 7;
    return wrong + (shared_counter != 8);
}

int threads_of_a_region() {
    std::vector<double> data(n, 0.5);
    double *const x = data.data(), sum = 0;
#pragma omp target teams distribute parallel for reduction(+ : sum) map(tofrom : sum)
    for (int i = 0; i < n; ++i) {
        x[i] += i;
        sum += x[i];
    }
    int wrong = sum != 0.5 * n + 0.5 * n * (n - 1.0);
    for (int i = 0; i < n; ++i)
        wrong += data[static_cast<std::size_t>(i)] != i + 0.5;
    return wrong;
}

int neighbours_in_a_page() {
    // Regions that run side by side, and the host, change different bytes of the same pages.
    static unsigned char bytes[4 * 4096];
    unsigned char* data = bytes;
    for (int i = 0; i < 4; ++i)
#pragma omp target nowait firstprivate(i)
        for (int k = i; k < 4 * 4096; k += 5)
            data[k] = static_cast<unsigned char>(i + 1);
    for (int k = 4; k < 4 * 4096; k += 5)
        data[k] = 77;
#pragma omp taskwait
    int wrong = 0;
    for (int k = 0; k < 4 * 4096; ++k)
        wrong += bytes[k] != (k % 5 == 4 ? 77 : k % 5 + 1);
    return wrong;
}

int standard_containers() {
    std::list<std::string> words{"some words", "that are long enough for the heap of the program", "x"};
    auto* const list = &words;
    unsigned long letters = 0;
#pragma omp target map(from : letters)
    {
        letters = 0;
        for (const std::string& word : *list)
            letters += word.size() * 1000 + static_cast<unsigned char>(word.back());
    }
    return letters != (10UL + 48 + 1) * 1000 + 's' + 'm' + 'x';
}

int memory_from_either_side() {
    const int device = omp_get_default_device();
    auto* const block = static_cast<int*>(omp_target_alloc(1000 * sizeof(int), device));
    for (int i = 0; i < 1000; ++i)
        block[i] = i;
#pragma omp target is_device_ptr(block)
    for (int i = 0; i < 1000; ++i)
        block[i] += 1;
    int copy[1000], wrong = 0;
    wrong += omp_target_memcpy(copy, block, sizeof copy, 0, 0, omp_get_initial_device(), device) != 0;
    for (int i = 0; i < 1000; ++i)
        wrong += block[i] != i + 1 || copy[i] != i + 1;
    omp_target_free(block, device);
    return wrong;
}

int mapped_as_well() {
    int field[64] = {0}, x = 0;
#pragma omp target data map(tofrom : field)
    {
#pragma omp target map(tofrom : x)
        {
            field[3] = 4;
            x = 5;
        }
#pragma omp target update from(field)
    }
    return field[3] != 4 || x != 5;
}

}  // namespace

int main() {
    RUN(heap_and_stack);
    RUN(linked_list);
    RUN(globals);
    RUN(threads_of_a_region);
    RUN(neighbours_in_a_page);
    RUN(standard_containers);
    RUN(memory_from_either_side);
    RUN(mapped_as_well);
    int on_device = 0;
#pragma omp target map(from : on_device)
    on_device = !omp_is_initial_device();
    std::printf("on the device: %d\n", on_device);
    return wrong_cases != 0;
}
