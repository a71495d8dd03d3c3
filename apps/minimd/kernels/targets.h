// The instruction sets that the kernels are compiled for: AVX-512, AVX2, SSE4 and x86-64's least; NEON.
#pragma once

#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#endif
