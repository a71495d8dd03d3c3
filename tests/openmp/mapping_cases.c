/* What map clauses, data regions and the runtime's memory calls mean, each in a small case. */
#include "cases.h"

enum { n = 1000 };

#pragma omp declare target
int global_table[n];
int global_scale = 3;
static int counted(void) {
    static int calls = 0;
    return ++calls;
}
#pragma omp end declare target

int linked_table[n];
#pragma omp declare target link(linked_table)

struct Series {
    int length;
    float weight;
    double *first, *second;
};
struct Nested {
    struct Series inner;
    int tail[3];
};
struct Pair {
    long key;
    int* values;
};
#pragma omp declare mapper(struct Pair p) map(p.key) map(p.values[0 : 50])

static int structure_with_pointers(void) {
    struct Series s = {n, 0.5F, malloc(n * sizeof(double)), malloc(n * sizeof(double))};
    int wrong = 0;
    for (int i = 0; i < n; i++)
        s.first[i] = i, s.second[i] = -i;
#pragma omp target map(tofrom : s) map(to : s.first[0 : n]) map(tofrom : s.second[0 : n])
    {
        for (int i = 0; i < s.length; i++)
            s.second[i] += s.first[i] * s.weight;
        s.length = 7;
    }
    for (int i = 0; i < n; i++)
        wrong += s.second[i] != -0.5 * i;
    wrong += s.length != 7;
    free(s.first);
    free(s.second);
    return wrong;
}

static int structure_in_structure(void) {
    struct Nested x = {{4, 1.0F, NULL, NULL}, {1, 2, 3}};
    double values[4] = {1, 2, 3, 4};
    x.inner.first = values;
#pragma omp target enter data map(to : x) map(to : x.inner.first[0 : 4])
#pragma omp target
    for (int i = 0; i < x.inner.length; i++)
        x.inner.first[i] *= x.tail[1];
#pragma omp target update from(x.inner.first[1 : 2])
    const int wrong = values[0] != 1 || values[1] != 4 || values[2] != 6 || values[3] != 4;
#pragma omp target exit data map(delete : x.inner.first[0 : 4], x)
    return wrong;
}

static int one_member_of_a_structure(void) {
    struct Nested x = {{1, 2.0F, NULL, NULL}, {10, 20, 30}};
#pragma omp target map(tofrom : x.tail[1 : 1])
    x.tail[1]++;
    return x.tail[0] != 10 || x.tail[1] != 21 || x.tail[2] != 30;
}

static int mapper(void) {
    int values[50], wrong = 0;
    struct Pair p = {5, values};
    for (int i = 0; i < 50; i++)
        values[i] = i;
#pragma omp target map(tofrom : p)
    for (int i = 0; i < 50; i++)
        p.values[i] += (int)p.key;
    for (int i = 0; i < 50; i++)
        wrong += values[i] != i + 5;
    return wrong;
}

static int sections_of_arrays(void) {
    static int table[20][30];
    int wrong = 0;
    memset(table, 0, sizeof table);
#pragma omp target map(tofrom : table[5 : 10][0 : 30])
    for (int i = 5; i < 15; i++)
        for (int k = 0; k < 30; k++)
            table[i][k] = i * k;
    for (int i = 0; i < 20; i++)
        for (int k = 0; k < 30; k++)
            wrong += table[i][k] != (i >= 5 && i < 15 ? i * k : 0);
    int* row = &table[3][0];
#pragma omp target map(tofrom : row[10 : 5])
    for (int k = 10; k < 15; k++)
        row[k] = -1;
    for (int k = 0; k < 30; k++)
        wrong += row[k] != (k >= 10 && k < 15 ? -1 : 0);
    return wrong;
}

static int variable_length_array(void) {
    int length = 37, wrong = 0;
    double values[length];
    for (int i = 0; i < length; i++)
        values[i] = i;
#pragma omp target map(tofrom : values)
    {
        int inside[length];
        for (int i = 0; i < length; i++)
            inside[i] = i;
        for (int i = 0; i < length; i++)
            values[i] += inside[length - 1 - i];
    }
    for (int i = 0; i < length; i++)
        wrong += values[i] != length - 1;
    return wrong;
}

static int declare_target_variables(void) {
    int wrong = 0, sum = 0;
    for (int i = 0; i < n; i++)
        global_table[i] = i;
#pragma omp target update to(global_table)
#pragma omp target map(tofrom : sum)
    for (int i = 0; i < n; i++) {
        sum += global_table[i];
        global_table[i] *= global_scale;
    }
    wrong += sum != n * (n - 1) / 2 || global_table[10] != 10;
#pragma omp target update from(global_table[0 : n / 2])
    for (int i = 0; i < n; i++)
        wrong += global_table[i] != (i < n / 2 ? 3 * i : i);
    return wrong;
}

static int declare_target_link(void) {
    int wrong = 0;
    for (int i = 0; i < n; i++)
        linked_table[i] = i;
#pragma omp target map(tofrom : linked_table)
    for (int i = 0; i < n; i++)
        linked_table[i] *= 3;
    for (int i = 0; i < n; i++)
        wrong += linked_table[i] != 3 * i;
    return wrong;
}

static int static_variable_of_a_function(void) {
    int last = 0, before = 0;
#pragma omp target map(from : before)
    before = counted();
    for (int i = 0; i < 5; i++)
#pragma omp target map(from : last)
        last = counted();
    return last != before + 5 || counted() != 1;
}

static int references_are_counted(void) {
    int x[10] = {0}, wrong = 0;
    const int device = omp_get_default_device();
#pragma omp target enter data map(to : x)
#pragma omp target enter data map(to : x)
#pragma omp target map(tofrom : x)
    x[0] = 1;
    wrong += x[0] != 0; /* present before: nothing is copied back */
#pragma omp target exit data map(from : x)
    wrong += x[0] != 0 || !omp_target_is_present(x, device);
#pragma omp target exit data map(from : x)
    wrong += x[0] != 1 || omp_target_is_present(x, device);
#pragma omp target enter data map(to : x)
#pragma omp target enter data map(to : x)
#pragma omp target exit data map(delete : x)
    return wrong + omp_target_is_present(x, device);
}

static int always_modifier(void) {
    int x = 1, seen = 0, wrong = 0;
#pragma omp target data map(tofrom : x)
    {
        x = 2;
#pragma omp target map(tofrom : x) map(from : seen)
        seen = x;
        wrong += seen != 1;
#pragma omp target map(always, tofrom : x) map(from : seen)
        seen = x++;
        wrong += seen != 2 || x != 3;
    }
    return wrong;
}

static int updates(void) {
    int x[100], wrong = 0;
    memset(x, 0, sizeof x);
#pragma omp target data map(alloc : x)
    {
#pragma omp target
        for (int i = 0; i < 100; i++)
            x[i] = i;
#pragma omp target update from(x[20 : 30])
        for (int i = 0; i < 100; i++)
            wrong += x[i] != (i >= 20 && i < 50 ? i : 0);
        for (int i = 0; i < 100; i++)
            x[i] = 1000;
#pragma omp target update to(x[0 : 10])
#pragma omp target update if (0) to(x)
#pragma omp target update from(x)
        for (int i = 0; i < 100; i++)
            wrong += x[i] != (i < 10 ? 1000 : i);
    }
    return wrong;
}

static int use_device_ptr(void) {
    int wrong = 0, *const x = malloc(n * sizeof(int));
    for (int i = 0; i < n; i++)
        x[i] = i;
#pragma omp target data map(tofrom : x[0 : n])
    {
#pragma omp target data use_device_ptr(x)
        {
#pragma omp target is_device_ptr(x)
            for (int i = 0; i < n; i++)
                x[i] += 1;
        }
    }
    int field[8] = {0};
#pragma omp target data map(tofrom : field) use_device_addr(field)
    {
        int* const there = field;
#pragma omp target is_device_ptr(there)
        there[3] = 4;
    }
    wrong += field[3] != 4;
    for (int i = 0; i < n; i++)
        wrong += x[i] != i + 1;
    free(x);
    return wrong;
}

static int memory_of_the_device(void) {
    const int device = omp_get_default_device(), host = omp_get_initial_device();
    int from[6][8], to[6][8], wrong = 0;
    int* const there = omp_target_alloc(sizeof from, device);
    if (there == NULL) return 1;
    for (int i = 0; i < 48; i++)
        from[i / 8][i % 8] = i, to[i / 8][i % 8] = -1;
    wrong += omp_target_memcpy(there, from, sizeof from, 0, 0, device, host) != 0;
#pragma omp target is_device_ptr(there)
    for (int i = 0; i < 48; i++)
        there[i] *= 2;
    const size_t volume[] = {2, 3}, to_offset[] = {1, 2}, from_offset[] = {3, 4}, shape[] = {6, 8};
    wrong += omp_target_memcpy_rect(to, there, sizeof(int), 2, volume, to_offset, from_offset, shape, shape,
                                    host, device) != 0;
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 8; k++)
            wrong += to[i][k] != (i >= 1 && i < 3 && k >= 2 && k < 5 ? 2 * ((i + 2) * 8 + k + 2) : -1);
    wrong += omp_target_memcpy(there + 24, there, 24 * sizeof(int), 0, 0, device, device) != 0;
    wrong += omp_target_memcpy(to, there, sizeof to, 0, 0, host, device) != 0;
    for (int i = 0; i < 48; i++)
        wrong += to[i / 8][i % 8] != 2 * (i % 24);
    omp_target_free(there, device);
    return wrong;
}

static int associated_memory(void) {
    const int device = omp_get_default_device();
    int x[64], wrong = 0;
    int* const there = omp_target_alloc(sizeof x, device);
    for (int i = 0; i < 64; i++)
        x[i] = i;
    wrong += omp_target_associate_ptr(x, there, sizeof x, 0, device) != 0;
#pragma omp target update to(x)
#pragma omp target map(tofrom : x)
    for (int i = 0; i < 64; i++)
        x[i] += 100;
    wrong += x[5] != 5; /* associated memory counts as present */
#pragma omp target update from(x)
    for (int i = 0; i < 64; i++)
        wrong += x[i] != i + 100;
    wrong += omp_target_disassociate_ptr(x, device) != 0 || omp_target_is_present(x, device);
    omp_target_free(there, device);
    return wrong;
}

static int scalars(void) {
    int copied = 1, mapped = 1, own = 1;
    float small = 0.25F;
    double large = 1e300;
    long long wide = 1LL << 40;
    unsigned char byte = 250;
    _Bool flag = 1;
    int wrong = 0;
#pragma omp target firstprivate(small, large, wide, byte, flag) private(own) map(tofrom : mapped, wrong)
    {
        own = 5;
        copied = 9; /* firstprivate by default */
        mapped = own + copied;
        wrong += small != 0.25F || large != 1e300 || wide != 1LL << 40 || byte != 250 || !flag;
    }
    return wrong + (copied != 1) + (mapped != 14) + (own != 1);
}

static int default_maps(void) {
    int x = 1, y = 1, field[4] = {1, 2, 3, 4}, *pointer = field, wrong = 0;
#pragma omp target defaultmap(tofrom : scalar)
    x = 2;
#pragma omp target defaultmap(firstprivate : aggregate) defaultmap(tofrom : scalar)
    {
        field[0] = 50;
        y = field[0] + field[3];
    }
    wrong += x != 2 || y != 54 || field[0] != 1;
#pragma omp target data map(tofrom : field)
#pragma omp target /* a pointer finds what is present */
    pointer[2] = 30;
    return wrong + (field[2] != 30);
}

static int firstprivate_arrays(void) {
    int x[500], sum = 0;
    for (int i = 0; i < 500; i++)
        x[i] = i;
#pragma omp target firstprivate(x) map(tofrom : sum)
    for (int i = 0; i < 500; i++) {
        x[i]++;
        sum += x[i];
    }
    return sum != 500 * 501 / 2 || x[499] != 499;
}

static int many_arguments(void) {
#define TEN(m) m(0) m(1) m(2) m(3) m(4) m(5) m(6) m(7) m(8) m(9)
#define DEFINE(i) int a##i = i, b##i = i, c##i = i, d##i = i;
    TEN(DEFINE)
    int sum = 0;
#define ADD(i) sum += a##i + b##i + c##i + d##i++;
    /* clang-format off */
#pragma omp target map(tofrom : sum, d0, d1, d2, d3, d4, d5, d6, d7, d8, d9)
    { TEN(ADD) }
    /* clang-format on */
    return sum != 4 * 45 || d0 != 1 || d9 != 10;
}

static int large_data(void) {
    const long bytes = 24L << 20;
    unsigned char* const data = malloc((size_t)bytes);
    int wrong = 0;
    for (long i = 0; i < bytes; i++)
        data[i] = (unsigned char)(i * 7);
#pragma omp target map(tofrom : data[0 : bytes])
    for (long i = 0; i < bytes; i++)
        data[i] ^= 0x55;
    for (long i = 0; i < bytes; i++)
        wrong += data[i] != ((unsigned char)(i * 7) ^ 0x55);
    free(data);
    return wrong;
}

static int if_and_device_clauses(void) {
    int on_host = 0, on_device = 1, initial = 0, wrong = 0;
#pragma omp target if (0) map(tofrom : on_host)
    on_host = omp_is_initial_device();
#pragma omp target if (1) map(tofrom : on_device)
    on_device = omp_is_initial_device();
    omp_set_default_device(omp_get_initial_device());
#pragma omp target map(tofrom : initial)
    initial = omp_is_initial_device();
    omp_set_default_device(0);
#pragma omp target device(omp_get_num_devices() - 1) map(tofrom : wrong)
    wrong += omp_is_initial_device();
    return wrong + !on_host + on_device + !initial;
}

static int zero_length_sections(void) {
    int x[4] = {1, 2, 3, 4}, found = 0;
    int *present = x, *absent = malloc(4);
#pragma omp target enter data map(to : x)
#pragma omp target map(to : present[0 : 0]) map(to : absent[0 : 0]) map(from : found)
    found = present[3];
#pragma omp target exit data map(delete : x)
    free(absent);
    return found != 4;
}

int main(void) {
    RUN(structure_with_pointers);
    RUN(structure_in_structure);
    RUN(one_member_of_a_structure);
    RUN(mapper);
    RUN(sections_of_arrays);
    RUN(variable_length_array);
    RUN(declare_target_variables);
    RUN(declare_target_link);
    RUN(static_variable_of_a_function);
    RUN(references_are_counted);
    RUN(always_modifier);
    RUN(updates);
    RUN(use_device_ptr);
    RUN(memory_of_the_device);
    RUN(associated_memory);
    RUN(scalars);
    RUN(default_maps);
    RUN(firstprivate_arrays);
    RUN(many_arguments);
    RUN(large_data);
    RUN(if_and_device_clauses);
    RUN(zero_length_sections);
    return wrong_cases != 0;
}
