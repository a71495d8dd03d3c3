/* What runs in a region and how regions depend on each other: teams, loops, reductions, tasks, dependences.
 */
#include "cases.h"

enum { n = 2000 };

struct Sum {
    double value;
    int count;
};
#pragma omp declare reduction(merge : struct Sum : omp_out.value += omp_in.value, \
                                  omp_out.count += omp_in.count) initializer(omp_priv = {0, 0})

#pragma omp declare target
static int fibonacci(int k) {
    return k < 2 ? k : fibonacci(k - 1) + fibonacci(k - 2);
}
static int twice(int x) {
    return 2 * x;
}
static int square(int x) {
    return x * x;
}
static int (*const table[])(int) = {twice, square};
#pragma omp declare simd
static float scaled(float x) {
    return 3 * x + 1;
}
#pragma omp end declare target

static int reductions_of_teams(void) {
    long sum = 0;
    int least = 0, most = 0;
    unsigned bits = 0, all = ~0U;
    double product = 1;
    _Bool some = 0;
#pragma omp target teams distribute parallel for map(tofrom : sum, least, most, bits, all, product, some)  \
    reduction(+ : sum) reduction(min : least) reduction(max : most) reduction(| : bits) reduction(& : all) \
    reduction(* : product) reduction(|| : some)
    for (int i = 0; i < n; i++) {
        sum += i;
        if (least > 5 - i) least = 5 - i;
        if (most < i * 2) most = i * 2;
        bits |= 1U << (i % 20);
        all &= ~(1U << (i % 7));
        product *= i % 400 == 3 ? 2 : 1;
        some = some || i == 1234;
    }
    return (sum != (long)n * (n - 1) / 2) + (least != 6 - n) + (most != 2 * n - 2) +
           (bits != (1U << 20) - 1) + (all != ~0x7FU) + (product != 32) + !some;
}

static int reductions_of_arrays(void) {
    int parts[5] = {0}, wrong = 0;
#pragma omp target parallel for reduction(+ : parts) map(tofrom : parts)
    for (int i = 0; i < n; i++)
        parts[i % 5] += i;
    int expected[5] = {0};
    for (int i = 0; i < n; i++)
        expected[i % 5] += i;
    for (int i = 0; i < 5; i++)
        wrong += parts[i] != expected[i];
    return wrong;
}

static int declared_reduction(void) {
    struct Sum sum = {0, 0};
#pragma omp target teams distribute parallel for reduction(merge : sum) map(tofrom : sum)
    for (int i = 0; i < n; i++) {
        sum.value += 0.5;
        sum.count++;
    }
    return sum.value != n / 2 || sum.count != n;
}

static int simd_loops(void) {
    static float x[n];
    float sum = 0;
    int last = 0, wrong = 0;
    for (int i = 0; i < n; i++)
        x[i] = (float)i;
#pragma omp target teams distribute parallel for simd map(tofrom : x) simdlen(4)
    for (int i = 0; i < n; i++)
        x[i] = scaled(x[i]);
#pragma omp target simd reduction(+ : sum) lastprivate(last) map(tofrom : sum, last) map(to : x)
    for (int i = 0; i < 100; i++) {
        sum += x[i];
        last = i;
    }
    for (int i = 0; i < n; i++)
        wrong += x[i] != 3.0F * (float)i + 1;
    return wrong + (sum != 3.0F * 4950 + 100) + (last != 99);
}

static int loops_of_two(void) {
    static int grid[40][50];
    int wrong = 0;
#pragma omp target teams distribute parallel for collapse(2) schedule(static, 3) map(from : grid)
    for (int i = 0; i < 40; i++)
        for (int k = 49; k >= 0; k--)
            grid[i][k] = i * 1000 + k;
#pragma omp target teams distribute map(tofrom : grid) dist_schedule(static, 4)
    for (int i = 0; i < 40; i++) {
        int row = 0;
#pragma omp parallel for reduction(+ : row) schedule(dynamic)
        for (int k = 0; k < 50; k++)
            row += grid[i][k];
        grid[i][0] = row;
    }
    for (int i = 0; i < 40; i++)
        wrong += grid[i][0] != i * 50000 + 49 * 25 || grid[i][7] != i * 1000 + 7;
    return wrong;
}

static int threads(void) {
    int count = 0, numbers = 0, level = -1, inside = 0, teams = 0, team = 0;
#pragma omp target map(tofrom : count, numbers, level)
#pragma omp parallel num_threads(4) reduction(+ : count, numbers)
    {
        count++;
        numbers += omp_get_thread_num();
#pragma omp single
        level = omp_get_level();
    }
#pragma omp target teams map(tofrom : inside, teams) reduction(+ : team)
    {
#pragma omp atomic
        inside += omp_in_parallel() + 1;
        team += omp_get_team_num();
        teams = omp_get_num_teams();
    }
    return (count < 1 || count > 4) + (numbers != count * (count - 1) / 2) + (level != 1) + (teams < 1) +
           (inside != teams) + (team != teams * (teams - 1) / 2);
}

static int synchronization(void) {
    int counter = 0, largest = 0, captured = 0, ordered[64], position = 0, sections = 0, masters = 0,
        wrong = 0;
#pragma omp target map(tofrom : counter, largest, captured, position, sections, masters) map(from : ordered)
    {
        omp_lock_t lock;
        omp_init_lock(&lock);
#pragma omp parallel num_threads(4)
        {
#pragma omp for ordered
            for (int i = 0; i < 64; i++) {
#pragma omp atomic
                counter += i;
#pragma omp critical(largest)
                if (i > largest) largest = i;
                int before;
#pragma omp atomic capture
                before = captured++;
                if (before < 0) largest = 1000;
#pragma omp ordered
                ordered[position++] = i;
            }
#pragma omp sections
            {
#pragma omp section
                {
                    omp_set_lock(&lock);
                    sections += 1;
                    omp_unset_lock(&lock);
                }
#pragma omp section
                {
                    omp_set_lock(&lock);
                    sections += 2;
                    omp_unset_lock(&lock);
                }
            }
#pragma omp barrier
#pragma omp master
            masters++;
        }
        omp_destroy_lock(&lock);
    }
    for (int i = 0; i < 64; i++)
        wrong += ordered[i] != i;
    return wrong + (counter != 64 * 63 / 2) + (largest != 63) + (captured != 64) + (sections != 3) +
           (masters != 1);
}

static int tasks_in_a_region(void) {
    int sum = 0, value = 0, chain = 1, loop[100], wrong = 0;
#pragma omp target map(tofrom : sum, value, chain) map(from : loop)
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp taskgroup task_reduction(+ : sum)
        for (int i = 0; i < 20; i++)
#pragma omp task in_reduction(+ : sum) firstprivate(i)
            sum += i;
#pragma omp task shared(chain) depend(out : chain)
        chain += 1;
#pragma omp task shared(chain) depend(inout : chain)
        chain *= 10;
#pragma omp task shared(value) depend(in : chain)
        value = chain + fibonacci(10);
#pragma omp taskwait
#pragma omp taskloop grainsize(9)
        for (int i = 0; i < 100; i++)
            loop[i] = -i;
    }
    for (int i = 0; i < 100; i++)
        wrong += loop[i] != -i;
    return wrong + (sum != 190) + (value != 75);
}

static int functions(void) {
    int first = 0, second = 0;
#pragma omp target map(tofrom : first, second)
    {
        first = table[0](21);
        int (*const chosen)(int) = first == 42 ? square : twice;
        second = chosen(5);
    }
    return first != 42 || second != 25;
}

static int dependences(void) {
    int x = 1, y = 0, z = 0;
#pragma omp target enter data map(to : x, y) nowait depend(out : x, y)
    for (int i = 0; i < 10; i++)
#pragma omp target map(tofrom : x) nowait depend(inout : x)
        x = 2 * x + 1;
#pragma omp target map(tofrom : x, y) nowait depend(in : x) depend(out : y)
    y = x + 1;
#pragma omp target update from(x) nowait depend(inout : x)
#pragma omp target exit data map(from : y) nowait depend(inout : x, y)
#pragma omp task shared(x, y, z) depend(in : y)
    z = x + y;
#pragma omp taskwait
#pragma omp target exit data map(delete : x)
    return (x != 2047) + (y != 2048) + (z != 4095);
}

static int regions_side_by_side(void) {
    static int field[16][100];
    int done = 0, wrong = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
        for (int i = 0; i < 16; i++)
#pragma omp target nowait map(from : field[i][0 : 100]) firstprivate(i)
            for (int k = 0; k < 100; k++)
                field[i][k] = i + k;
#pragma omp task shared(done)
        done = 1;
    }
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 100; k++)
            wrong += field[i][k] != i + k;
    return wrong + !done;
}

static int regions_of_threads(void) {
    int results[8], wrong = 0;
#pragma omp parallel for num_threads(8)
    for (int i = 0; i < 8; i++) {
        int sum = 0;
        for (int repeat = 0; repeat < 20; repeat++)
#pragma omp target map(tofrom : sum)
            sum += i;
        results[i] = sum;
    }
    for (int i = 0; i < 8; i++)
        wrong += results[i] != 20 * i;
    return wrong;
}

static int task_group_of_regions(void) {
    int x[4] = {0}, sum = 0;
#pragma omp taskgroup
    for (int i = 0; i < 4; i++)
#pragma omp target nowait map(tofrom : x[i : 1]) firstprivate(i)
        x[i] = i + 1;
    for (int i = 0; i < 4; i++)
        sum += x[i];
    return sum != 10;
}

static int regions_in_reductions(void) {
    int sum = 100;
#pragma omp parallel num_threads(2)
#pragma omp single
#pragma omp taskgroup task_reduction(+ : sum)
    for (int i = 1; i <= 4; i++)
#pragma omp target in_reduction(+ : sum) firstprivate(i)
        sum += i;
    return sum != 110;
}

static int numbers_of_the_device(void) {
    int initial = 1, devices = -1, host = -1;
#pragma omp target map(from : initial, devices, host)
    {
        initial = omp_is_initial_device();
        devices = omp_get_num_procs();
        host = omp_get_num_teams();
    }
    return initial + (devices < 1) + (host != 1) + (omp_get_num_devices() < 1) + !omp_is_initial_device();
}

int main(void) {
    /* First: LLVM 16's runtime may hang in tasks of threads that slept since a larger team. */
    RUN(tasks_in_a_region);
    RUN(reductions_of_teams);
    RUN(reductions_of_arrays);
    RUN(declared_reduction);
    RUN(simd_loops);
    RUN(loops_of_two);
    RUN(threads);
    RUN(synchronization);
    RUN(functions);
    RUN(dependences);
    RUN(regions_side_by_side);
    RUN(regions_of_threads);
    RUN(task_group_of_regions);
    RUN(regions_in_reductions);
    RUN(numbers_of_the_device);
    return wrong_cases != 0;
}
