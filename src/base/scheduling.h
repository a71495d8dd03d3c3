// What a thread may ask of the kernel's scheduler without any right.
#pragma once

namespace offpath {

// For a thread that works in short bursts beside threads that compute, as the agents of staged memory do:
// when it wakes it runs soon instead of after its neighbour's slice, some milliseconds later, without a
// greater share of the core. Linux 6.12 and newer; elsewhere nothing happens. The calling thread's setting
// only.
void ask_for_short_slices();

}  // namespace offpath
