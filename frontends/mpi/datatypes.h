// What the front end needs to know of a datatype: its bytes, and whether an array of it is those bytes in
// order.
//
// Where it is not, values are packed into staging memory and unpacked at completion, so that the device sees
// bytes only. What was found out about a derived type is kept as an attribute of it until the program frees
// the type; an operation that unpacks later holds a reference, because that may happen meanwhile. A type that
// the program gets again by MPI_Type_get_contents is looked at again. Thread-safe.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>

namespace offpath::mpi {

struct Layout {
    MPI_Datatype held =
        MPI_DATATYPE_NULL;  // one part of an element of the user's type, which lives as long as the layout
    std::size_t parts = 1;  // equal ones that follow each other; several: of more elements than an int counts
    std::size_t bytes = 0;  // of one element, packed
    MPI_Aint extent = 0;
    bool contiguous = false;
    bool in_gpu = false;  // plain bytes, but in memory that only a GPU's driver may touch
    std::atomic<int> references{1};
};

// By value for each use. `layout` is null for contiguous types.
struct TypeUse {
    bool usable = false;  // false: not committed, so the host's MPI is to report it
    std::size_t bytes = 0;
    MPI_Aint extent = 0;
    Layout* layout = nullptr;
    bool contiguous() const { return layout == nullptr; }
};

// Bytes of one element. `type` must not be MPI_DATATYPE_NULL.
inline std::size_t type_bytes(MPI_Datatype type) {
    MPI_Count size = 0;
    PMPI_Type_size_x(type, &size);
    return size > 0 ? static_cast<std::size_t>(size) : 0;
}

TypeUse use_type(MPI_Datatype type);
// The same for elements at this address, which may be memory of a GPU: such elements are never contiguous.
TypeUse use_type(MPI_Datatype type, const void* elements);
// Bytes in memory of a GPU, as elements of `bytes` each. Lives for ever.
Layout& layout_in_gpu(std::size_t bytes);

// Of a type of our own that is `count` elements of another, one after the other: what it is packed as. Before
// its first use.
void set_parts(MPI_Datatype type, MPI_Datatype element, std::size_t count);

// A type of our own that means the same, for what outlives the user's. Freed by whoever asked for it; null
// for predefined types.
MPI_Datatype hold_type(MPI_Datatype type);

// MPI_Type_free, for the program's types and for ours that were used. What is kept of a type refers to it,
// and would keep it for ever.
int free_type(MPI_Datatype* type);

void retain(Layout& layout);
void release(Layout& layout);

inline std::size_t part_bytes(const Layout& layout) {
    return layout.bytes / layout.parts;
}
inline MPI_Aint part_extent(const Layout& layout) {
    return layout.extent / static_cast<MPI_Aint>(layout.parts);
}

// `count` elements at `elements` to or from count * layout.bytes packed bytes. False when the host's MPI
// refuses.
bool pack(const Layout& layout, const void* elements, std::size_t count, void* packed);
bool unpack(const Layout& layout, const void* packed, void* elements, std::size_t count);
// The same for `count` parts of elements.
bool pack_parts(const Layout& layout, const void* elements, std::size_t count, void* packed);
bool unpack_parts(const Layout& layout, const void* packed, void* elements, std::size_t count);

void open_datatypes();
void close_datatypes();

}  // namespace offpath::mpi
