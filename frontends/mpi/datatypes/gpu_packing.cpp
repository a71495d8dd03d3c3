#include "gpu_packing.h"

#include "datatypes.h"
#include "type_shapes.h"

namespace offpath::mpi::gpu {
namespace {

// Calls `each(place, packed_at, bytes)` for every piece.
template <typename Each>
bool for_each_piece(const Layout& layout, std::size_t count, Each each) {
    if (layout.in_gpu) return each(MPI_Aint{0}, std::size_t{0}, count * layout.bytes);
    const ShapePointer shape = shape_of(layout.held);
    if (shape == nullptr) return false;
    std::size_t packed_at = 0;
    for (std::size_t i = 0; i < count; ++i) {
        for (const Run& run : shape->runs) {
            if (!each(static_cast<MPI_Aint>(i) * shape->extent + run.offset, packed_at, run.bytes))
                return false;
            packed_at += run.bytes;
        }
    }
    return true;
}

}  // namespace

bool are_in_gpu(const Layout& layout, const void* elements) {
    if (layout.in_gpu) return true;
    if (!any_driver()) return false;
    MPI_Count lower = 0;
    MPI_Count extent = 0;
    PMPI_Type_get_true_extent_x(layout.held, &lower, &extent);
    return is_device_memory(at(elements, static_cast<MPI_Aint>(lower)));
}

bool are_in_gpu(const Elements& described, const void* elements) {
    if (described.bytes() == 0 || !any_driver()) return false;
    return is_device_memory(at(elements, described.runs()[0].offset));
}

bool pack(const Layout& layout, const void* elements, std::size_t count, void* packed) {
    return for_each_piece(layout, count, [&](MPI_Aint place, std::size_t packed_at, std::size_t bytes) {
        return copy(at(packed, static_cast<MPI_Aint>(packed_at)), at(elements, place), bytes);
    });
}

bool unpack(const Layout& layout, const void* packed, void* elements, std::size_t count) {
    return for_each_piece(layout, count, [&](MPI_Aint place, std::size_t packed_at, std::size_t bytes) {
        return copy(at(elements, place), at(packed, static_cast<MPI_Aint>(packed_at)), bytes);
    });
}

}  // namespace offpath::mpi::gpu
