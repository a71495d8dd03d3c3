// What a thread may request of the kernel's scheduler without privileges.
#pragma once

namespace offpath {

// Serves a thread that works in short bursts on a core where other threads compute, such as an agent of
// staged memory. When the thread wakes it runs soon, instead of some milliseconds later when its neighbour's
// slice ends. Its share of the core does not grow. Needs Linux 6.12; earlier kernels ignore the request.
// Affects the calling thread only.
void ask_for_short_slices();

}  // namespace offpath
