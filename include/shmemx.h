/* Extensions of OpenSHMEM by offpath.
 *
 * Sums into another PE's memory: dest[i] += source[i] for nelems elements of symmetric memory at `pe`, which
 * the standard has for single integers only. The device of that PE adds; nothing is asked of the PE itself.
 * Element by element, sums are atomic to each other, whichever PE they come from; plain accesses, puts and
 * atomic operations on the same elements are not part of this, until a quiet and a synchronisation lie
 * between. Ordered by fence and finished by quiet, as puts are. Without _nbi, `source` may be reused at
 * return; with it, after quiet. Errors are those of puts: PE, symmetric extent, alignment to the element. */
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
