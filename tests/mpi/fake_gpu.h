// What the stand-ins for GPUs' driver libraries answer, and what they were asked (fake_gpu.cpp).
#pragma once

struct FakeGpu {
    // Results of functions; zero is success.
    int init = 0, drivers = 0, contexts = 0, attributes = 0, managed_attribute = 0, context_attribute = 0,
        version_call = 0;
    int push = 0, lists = 0, copy = 0, synchronize = 0;

    unsigned driver_count = 1;
    int version = 60'000'000;
    unsigned type = 0;             // of the memory at `memory`
    int managed = 0;               // likewise
    const void* memory = nullptr;  // other addresses are the host's

    int errors_forgotten = 0, pushed = 0, popped = 0, lists_made = 0, copied = 0;
};
