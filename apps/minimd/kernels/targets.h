// The instruction sets that the kernels are compiled for: AVX-512, AVX2, SSE4 and the x86-64 baseline; NEON.
// Must be included before Highway's headers.
//
// SVE is disabled: a program cannot know the size of its vectors, but blocks need a fixed number of lanes.
#pragma once

#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#endif
