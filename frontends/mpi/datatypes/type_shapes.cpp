#include "type_shapes.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "datatypes.h"
#include "gpu_packing.h"
#include "type_contents.h"

namespace offpath::mpi {
namespace {

int shape_keyval = MPI_KEYVAL_INVALID;

int on_delete_shape(MPI_Datatype, int, void* value, void*) {
    delete static_cast<ShapePointer*>(value);
    return MPI_SUCCESS;
}

// Returns the basic type of a type that a program chose by precision, or null if the device does not know it.
MPI_Datatype chosen_type(int combiner, std::size_t bytes) {
    if (combiner == MPI_COMBINER_F90_REAL)
        return bytes == 4 ? MPI_FLOAT : bytes == 8 ? MPI_DOUBLE : MPI_DATATYPE_NULL;
    if (combiner == MPI_COMBINER_F90_COMPLEX)
        return bytes == 8 ? MPI_C_FLOAT_COMPLEX : bytes == 16 ? MPI_C_DOUBLE_COMPLEX : MPI_DATATYPE_NULL;
    if (combiner != MPI_COMBINER_F90_INTEGER) return MPI_DATATYPE_NULL;
    switch (bytes) {
        case 1:
            return MPI_INT8_T;
        case 2:
            return MPI_INT16_T;
        case 4:
            return MPI_INT32_T;
        case 8:
            return MPI_INT64_T;
        default:
            return MPI_DATATYPE_NULL;
    }
}

// Returns the one predefined type of which `type` consists. Null if there are none or several, or if the
// host's MPI does not tell.
MPI_Datatype basic_of(MPI_Datatype type) {
    const TypeContents contents(type);
    if (contents.combiner() == MPI_COMBINER_NAMED) return type;
    if (contents.types().empty()) return chosen_type(contents.combiner(), type_bytes(type));
    const MPI_Datatype basic = basic_of(contents.types()[0]);
    const bool same =
        std::ranges::all_of(contents.types(), [&](MPI_Datatype part) { return basic_of(part) == basic; });
    return same ? basic : MPI_DATATYPE_NULL;
}

// Whether `basic` is a predefined pair with gaps.
bool is_pair(MPI_Datatype basic) {
    for (MPI_Datatype pair :
         {MPI_SHORT_INT, MPI_LONG_INT, MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_DOUBLE_INT, MPI_2INT}) {
        if (basic == pair) return true;
    }
    return false;
}

void find_whole_pairs(Shape& shape) {
    MPI_Aint lower = 0;
    MPI_Aint extent = 0;
    PMPI_Type_get_extent(shape.basic, &lower, &extent);
    const std::size_t size = type_bytes(shape.basic);
    std::size_t skip = 0;  // bytes of the pair in which a run begins that were already seen
    for (const Run& run : shape.runs) {
        std::size_t at = skip == 0 ? 0 : size - skip;
        for (; at < run.bytes; at += size)
            append(shape.whole_runs, run.offset + static_cast<MPI_Aint>(at),
                   static_cast<std::size_t>(extent));
        skip = (run.bytes + skip) % size;
    }
    shape.whole_bytes = shape.bytes / size * static_cast<std::size_t>(extent);
}

ShapePointer make_shape(MPI_Datatype type) {
    auto shape = std::make_shared<Shape>();
    MPI_Aint lower = 0;
    shape->bytes = type_bytes(type);
    PMPI_Type_get_extent(type, &lower, &shape->extent);
    shape->basic = basic_of(type);
    if (use_type(type).contiguous()) {
        shape->runs.push_back({0, shape->bytes});
    } else if (!find_runs(type, shape->runs)) {
        return nullptr;
    }
    shape->whole_bytes = shape->bytes;
    shape->whole_runs = shape->runs;
    if (shape->basic != MPI_DATATYPE_NULL && is_pair(shape->basic) && shape->bytes > 0) {
        shape->pairs = true;
        shape->whole_runs.clear();
        find_whole_pairs(*shape);
    }
    return shape;
}

}  // namespace

bool Shape::plain(bool whole) const {
    const std::vector<Run>& these = whole ? whole_runs : runs;
    const std::size_t size = whole ? whole_bytes : bytes;
    return these.size() == 1 && these[0].offset == 0 && extent == static_cast<MPI_Aint>(size);
}

ShapePointer shape_of(MPI_Datatype type) {
    struct Latest {
        MPI_Datatype type = MPI_DATATYPE_NULL;
        ShapePointer shape;
    };
    // Predefined types never change their meaning.
    thread_local Latest latest;
    if (latest.shape != nullptr && latest.type == type) return latest.shape;
    const TypeUse use = use_type(type);
    if (!use.usable) return nullptr;
    if (use.layout != nullptr && use.layout->parts > 1) return shape_of(use.layout->held);
    void* value = nullptr;
    int found = 0;
    static std::mutex one_maker;
    const std::lock_guard lock(one_maker);
    PMPI_Type_get_attr(type, shape_keyval, static_cast<void*>(&value), &found);
    ShapePointer shape = found != 0 ? *static_cast<ShapePointer*>(value) : nullptr;
    if (shape == nullptr) {
        shape = make_shape(type);
        if (shape == nullptr) return nullptr;
        PMPI_Type_set_attr(type, shape_keyval, new ShapePointer(shape));
    }
    if (shape->basic == type) latest = {type, shape};
    return shape;
}

Elements elements_of(MPI_Datatype type, int count, bool whole) {
    Elements elements{shape_of(type), static_cast<std::size_t>(count), whole};
    if (elements.shape == nullptr) return elements;
    if (const Layout* layout = use_type(type).layout; layout != nullptr) elements.count *= layout->parts;
    return elements;
}

namespace {

// Calls `move(place, packed_at, bytes)` for every piece of the elements, with offsets.
template <typename Move>
void for_each_piece_of(const Elements& elements, Move move) {
    if (elements.plain()) return move(MPI_Aint{0}, std::size_t{0}, elements.bytes());
    std::size_t packed_at = 0;
    for (std::size_t i = 0; i < elements.count; ++i) {
        for (const Run& run : elements.runs()) {
            move(static_cast<MPI_Aint>(i) * elements.shape->extent + run.offset, packed_at, run.bytes);
            packed_at += run.bytes;
        }
    }
}

}  // namespace

void Elements::pack(const void* elements, void* packed) const {
    if (gpu::are_in_gpu(*this, elements)) {
        gpu::count_staged();
        return for_each_piece_of(*this, [&](MPI_Aint place, std::size_t packed_at, std::size_t bytes) {
            gpu::copy(static_cast<char*>(packed) + packed_at, static_cast<const char*>(elements) + place,
                      bytes);
        });
    }
    auto* to = static_cast<char*>(packed);
    const auto* element = static_cast<const char*>(elements);
    for (std::size_t i = 0; i < count; ++i, element += shape->extent) {
        for (const Run& run : runs()) {
            std::memcpy(to, element + run.offset, run.bytes);
            to += run.bytes;
        }
    }
}

void Elements::unpack(const void* packed, void* elements) const {
    if (gpu::are_in_gpu(*this, elements)) {
        gpu::count_staged();
        return for_each_piece_of(*this, [&](MPI_Aint place, std::size_t packed_at, std::size_t bytes) {
            gpu::copy(static_cast<char*>(elements) + place, static_cast<const char*>(packed) + packed_at,
                      bytes);
        });
    }
    const auto* from = static_cast<const char*>(packed);
    auto* element = static_cast<char*>(elements);
    for (std::size_t i = 0; i < count; ++i, element += shape->extent) {
        for (const Run& run : runs()) {
            std::memcpy(element + run.offset, from, run.bytes);
            from += run.bytes;
        }
    }
}

std::vector<offpath_segment_t> Elements::segments(std::uint64_t offset) const {
    std::vector<offpath_segment_t> found;
    if (shape->plain(whole)) {
        found.push_back({offset, bytes()});
        return found;
    }
    found.reserve(count * runs().size());
    for (std::size_t i = 0; i < count; ++i) {
        for (const Run& run : runs()) {
            const std::uint64_t at =
                offset + static_cast<std::uint64_t>(static_cast<MPI_Aint>(i) * shape->extent + run.offset);
            if (!found.empty() && found.back().offset + found.back().bytes == at) {
                found.back().bytes += run.bytes;
            } else {
                found.push_back({at, run.bytes});
            }
        }
    }
    return found;
}

void open_shapes() {
    PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, on_delete_shape, &shape_keyval, nullptr);
}

void close_shapes() {
    PMPI_Type_free_keyval(&shape_keyval);
}

}  // namespace offpath::mpi
