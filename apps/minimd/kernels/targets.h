// The instruction sets that the kernels are compiled for: AVX-512, AVX2, SSE4 and x86-64's least; NEON.
// Before Highway's headers.
//
// SVE's vectors have no size that a program could know, which blocks of a fixed number of lanes need.
#pragma once

#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#endif
