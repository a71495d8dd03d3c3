// The calls of shmemx.h: sums of arrays. The device of the target PE executes them, also within its node,
// because a single executor makes them atomic to each other.
#include <shmemx.h>

#include <fmt/format.h>

#include "calls/bodies.h"
#include "device.h"

namespace offpath::shmem {

namespace {

void accumulate(Context& context, void* dest, const void* source, std::size_t count_of_elements,
                std::size_t element, offpath_type_t type, int pe, bool nbi) {
    if (count_of_elements == 0) return check_pe(context, pe);
    const Place place = place_of(context, dest, bytes_of(count_of_elements, element), source, pe);
    if (reinterpret_cast<std::uintptr_t>(dest) % element != 0) [[unlikely]]
        fail(fmt::format("a sum of elements of {} bytes at {}, which is not aligned to them", element,
                         fmt::ptr(dest)));
    const offpath_place_t there = place_at(place);
    const auto call = [&](offpath_request_h* request) {
        return offpath_accumulate(world.window, source, count_of_elements, type, OFFPATH_SUM, &there,
                                  request);
    };
    Unfinished noted;
    noted.kind = Unfinished::Kind::sum;
    noted.type = type;
    noted.element = static_cast<std::uint32_t>(element);
    noted.source = source;
    noted.bytes = count_of_elements * element;
    if (nbi) return hand_over(context, place, true, "a sum", call, noted);
    note(place, noted);
    if (ended(waited_for(call), "a sum")) drop_note();
}

}  // namespace

}  // namespace offpath::shmem

#define SUMS(NAME, TYPE, KIND)                                                                               \
    OFFPATH_SHMEM_EXPORT void shmemx_##NAME##_accumulate(TYPE* dest, const TYPE* source, std::size_t nelems, \
                                                         int pe) {                                           \
        offpath::shmem::accumulate(offpath::shmem::default_context(), dest, source, nelems, sizeof(TYPE),    \
                                   KIND, pe, false);                                                         \
    }                                                                                                        \
    OFFPATH_SHMEM_EXPORT void shmemx_##NAME##_accumulate_nbi(TYPE* dest, const TYPE* source,                 \
                                                             std::size_t nelems, int pe) {                   \
        offpath::shmem::accumulate(offpath::shmem::default_context(), dest, source, nelems, sizeof(TYPE),    \
                                   KIND, pe, true);                                                          \
    }                                                                                                        \
    OFFPATH_SHMEM_EXPORT void shmemx_ctx_##NAME##_accumulate(                                                \
        shmem_ctx_t ctx, TYPE* dest, const TYPE* source, std::size_t nelems, int pe) {                       \
        offpath::shmem::accumulate(offpath::shmem::context_of(ctx), dest, source, nelems, sizeof(TYPE),      \
                                   KIND, pe, false);                                                         \
    }                                                                                                        \
    OFFPATH_SHMEM_EXPORT void shmemx_ctx_##NAME##_accumulate_nbi(                                            \
        shmem_ctx_t ctx, TYPE* dest, const TYPE* source, std::size_t nelems, int pe) {                       \
        offpath::shmem::accumulate(offpath::shmem::context_of(ctx), dest, source, nelems, sizeof(TYPE),      \
                                   KIND, pe, true);                                                          \
    }

SUMS(float, float, OFFPATH_FLOAT32)
SUMS(double, double, OFFPATH_FLOAT64)
SUMS(int32, std::int32_t, OFFPATH_INT32)
SUMS(int64, std::int64_t, OFFPATH_INT64)
