/* Compiled by any compiler, once for the host and once for each architecture of devices. */
static int calls = 0;

double library_norm(const double* numbers, int count) {
    double sum = 0;
    calls++;
    for (int i = 0; i < count; i++)
        sum += numbers[i] * numbers[i];
    return sum;
}

int library_calls(void) {
    return calls;
}
