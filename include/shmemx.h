/* offpath's extensions of OpenSHMEM.
 *
 * The accumulate calls add to another PE's memory: dest[i] += source[i] for nelems elements of symmetric
 * memory at `pe`. The standard has this for single integers only. The device of that PE adds, without the
 * PE's process.
 *
 * Each element's sums are atomic to each other, whichever PE they come from. They are not atomic to plain
 * accesses, puts and atomic operations on the same elements. Separate these by a quiet and a synchronisation.
 *
 * A fence orders the calls and a quiet completes them, as with puts. `source` may be reused when the call
 * returns, and with _nbi after a quiet. Errors are those of puts: the PE, the symmetric range, the alignment
 * of the elements. */
#ifndef OFFPATH_SHMEMX_H
#define OFFPATH_SHMEMX_H

#include <shmem.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OFFPATH_SHMEMX_SUMS(NAME, TYPE)                                                                     \
    void shmemx_##NAME##_accumulate(TYPE* dest, const TYPE* source, size_t nelems, int pe);                 \
    void shmemx_##NAME##_accumulate_nbi(TYPE* dest, const TYPE* source, size_t nelems, int pe);             \
    void shmemx_ctx_##NAME##_accumulate(shmem_ctx_t ctx, TYPE* dest, const TYPE* source, size_t nelems,     \
                                        int pe);                                                            \
    void shmemx_ctx_##NAME##_accumulate_nbi(shmem_ctx_t ctx, TYPE* dest, const TYPE* source, size_t nelems, \
                                            int pe);

OFFPATH_SHMEMX_SUMS(float, float)
OFFPATH_SHMEMX_SUMS(double, double)
OFFPATH_SHMEMX_SUMS(int32, int32_t)
OFFPATH_SHMEMX_SUMS(int64, int64_t)

#undef OFFPATH_SHMEMX_SUMS

#ifdef __cplusplus
}
#endif

#endif
