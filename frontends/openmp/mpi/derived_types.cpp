// Datatypes that regions derive: contiguous, vectors, lists of blocks, structures, and others with bounds of
// their own.
#include "openmp/mpi/communicators.h"
#include "openmp/mpi/datatypes.h"
#include "openmp/mpi/errors.h"
#include "openmp/mpi/handles.h"

#include <climits>
#include <string>

namespace offpath::region_mpi {
namespace {

using SharedType = std::shared_ptr<Type>;
Handles<MPI_Datatype, SharedType, true> handles;

SharedType& own_type(MPI_Datatype handle) {
    if (SharedType* const found = handles.find(handle)) return *found;
    throw MpiError{MPI_ERR_TYPE, "it is no datatype that a region has derived"};
}

class Builder {
  public:
    void append(MPI_Datatype of, std::ptrdiff_t at, int count) {
        if (!layout_.append(*type_of(of).layout, at, elements(count)))
            throw MpiError{MPI_ERR_TYPE, "an element of the datatype would have more than " +
                                             std::to_string(Layout::most_runs) + " pieces"};
    }
    Layout& layout() { return layout_; }
    MPI_Datatype finish() {
        auto type = std::make_shared<Type>();
        type->bytes = layout_.bytes();
        type->plain = layout_.is_plain();
        type->committed = false;
        type->layout = std::make_shared<Layout>(std::move(layout_));
        return handles.make(new SharedType(std::move(type)));
    }

  private:
    Layout layout_;
};

std::ptrdiff_t extent_of(MPI_Datatype type) {
    return type_of(type).layout->extent();
}

// `length` blocks of `block` elements, whose beginnings are `stride` bytes apart.
MPI_Datatype vector(int length, int block, std::ptrdiff_t stride, MPI_Datatype type) {
    Builder builder;
    for (std::size_t i = 0; i < elements(length); ++i)
        builder.append(type, static_cast<std::ptrdiff_t>(i) * stride, block);
    return builder.finish();
}

// Blocks at `places`, each `unit` bytes. `lengths` has one entry, or one for each block.
template <typename Place>
MPI_Datatype blocks(int count, const int* lengths, bool one_length, const Place* places, std::ptrdiff_t unit,
                    MPI_Datatype type) {
    Builder builder;
    for (std::size_t i = 0; i < elements(count); ++i)
        builder.append(type, static_cast<std::ptrdiff_t>(places[i]) * unit, lengths[one_length ? 0 : i]);
    return builder.finish();
}

}  // namespace

std::shared_ptr<const Type> derived_type(MPI_Datatype handle) {
    const SharedType* const found = handles.find(handle);
    return found != nullptr ? *found : nullptr;
}

}  // namespace offpath::region_mpi

using namespace offpath::region_mpi;

// A call that makes a type: MAKES_TYPE(Name, (parameters), expression).
#define OFFPATH_PARAMETERS(...) __VA_ARGS__
#define MAKES_TYPE(name, parameters, ...)                                                            \
    OFFPATH_EXPORT int MPI_##name(OFFPATH_PARAMETERS parameters, MPI_Datatype* made) {               \
        return in_call("MPI_" #name, MPI_COMM_WORLD, [&](Communicator&) { *made = (__VA_ARGS__); }); \
    }

MAKES_TYPE(Type_contiguous, (int count, MPI_Datatype type), vector(1, count, 0, type))
MAKES_TYPE(Type_vector, (int count, int block, int stride, MPI_Datatype type),
           vector(count, block, stride* extent_of(type), type))
MAKES_TYPE(Type_create_hvector, (int count, int block, MPI_Aint stride, MPI_Datatype type),
           vector(count, block, stride, type))
MAKES_TYPE(Type_indexed, (int count, const int* lengths, const int* places, MPI_Datatype type),
           blocks(count, lengths, false, places, extent_of(type), type))
MAKES_TYPE(Type_create_hindexed, (int count, const int* lengths, const MPI_Aint* places, MPI_Datatype type),
           blocks(count, lengths, false, places, 1, type))
MAKES_TYPE(Type_create_indexed_block, (int count, int length, const int* places, MPI_Datatype type),
           blocks(count, &length, true, places, extent_of(type), type))
MAKES_TYPE(Type_create_hindexed_block, (int count, int length, const MPI_Aint* places, MPI_Datatype type),
           blocks(count, &length, true, places, 1, type))

OFFPATH_EXPORT int MPI_Type_create_struct(int count, const int* lengths, const MPI_Aint* places,
                                          const MPI_Datatype* types, MPI_Datatype* made) {
    return in_call("MPI_Type_create_struct", MPI_COMM_WORLD, [&](Communicator&) {
        Builder builder;
        for (std::size_t i = 0; i < elements(count); ++i)
            builder.append(types[i], places[i], lengths[i]);
        builder.layout().align();
        *made = builder.finish();
    });
}

OFFPATH_EXPORT int MPI_Type_create_resized(MPI_Datatype type, MPI_Aint lower, MPI_Aint extent,
                                           MPI_Datatype* made) {
    return in_call("MPI_Type_create_resized", MPI_COMM_WORLD, [&](Communicator&) {
        Builder builder;
        builder.append(type, 0, 1);
        builder.layout().lower = lower;
        builder.layout().upper = lower + extent;
        builder.layout().alignment = 0;
        *made = builder.finish();
    });
}

OFFPATH_EXPORT int MPI_Type_dup(MPI_Datatype type, MPI_Datatype* made) {
    return in_call("MPI_Type_dup", MPI_COMM_WORLD, [&](Communicator&) {
        *made = handles.make(new SharedType(std::make_shared<Type>(type_of(type))));
    });
}

OFFPATH_EXPORT int MPI_Type_commit(MPI_Datatype* type) {
    return in_call("MPI_Type_commit", MPI_COMM_WORLD, [&](Communicator&) {
        if (type_of(*type).committed) return;
        SharedType& mine = own_type(*type);
        auto committed = std::make_shared<Type>(*mine);
        committed->committed = true;
        mine = std::move(committed);
    });
}

OFFPATH_EXPORT int MPI_Type_free(MPI_Datatype* type) {
    return in_call("MPI_Type_free", MPI_COMM_WORLD, [&](Communicator&) {
        SharedType* const mine = &own_type(*type);
        handles.forget(*type);
        delete mine;
        *type = MPI_DATATYPE_NULL;
    });
}

OFFPATH_EXPORT int MPI_Type_get_extent(MPI_Datatype type, MPI_Aint* lower, MPI_Aint* extent) {
    return in_call("MPI_Type_get_extent", MPI_COMM_WORLD, [&](Communicator&) {
        const Type known = type_of(type);
        *lower = known.layout->lower;
        *extent = known.layout->extent();
    });
}
