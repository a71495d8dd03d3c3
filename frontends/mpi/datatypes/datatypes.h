// What the front end needs to know about a datatype: its bytes, and whether an array of it is exactly those
// bytes in order.
//
// Otherwise values are packed into staging memory and unpacked at completion, so the device sees bytes only.
// The result for a derived type is kept as an attribute until the program frees the type. An operation that
// unpacks later holds a reference, because the program may free the type first. A type obtained again through
// MPI_Type_get_contents is analysed again. Thread-safe.
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

// Made by value for each use. `layout` is null for contiguous types.
struct TypeUse {
    bool usable = false;  // false: not committed; the host's MPI reports the error
    std::size_t bytes = 0;
    MPI_Aint extent = 0;
    Layout* layout = nullptr;
    bool contiguous() const { return layout == nullptr; }
};

inline char* at(const void* buffer, MPI_Aint offset) {
    return const_cast<char*>(static_cast<const char*>(buffer)) + offset;
}

// Bytes of one element. `type` must not be MPI_DATATYPE_NULL.
inline std::size_t type_bytes(MPI_Datatype type) {
    MPI_Count size = 0;
    PMPI_Type_size_x(type, &size);
    return size > 0 ? static_cast<std::size_t>(size) : 0;
}

TypeUse use_type(MPI_Datatype type);
// The same for elements at this address. Elements in memory of a GPU are never contiguous.
TypeUse use_type(MPI_Datatype type, const void* elements);
// The layout of bytes in memory of a GPU, as elements of `bytes` each. It lives for ever.
Layout& layout_in_gpu(std::size_t bytes);

// Declares that our type `type` is `count` consecutive elements of `element`, so that it is packed as such.
// Call it before the first use.
void set_parts(MPI_Datatype type, MPI_Datatype element, std::size_t count);

// Makes an equivalent type of our own, for uses that outlive the user's type. The caller frees it. Null for
// predefined types.
MPI_Datatype hold_type(MPI_Datatype type);

// MPI_Type_free, for the program's types and for used ones of ours. It also drops the kept layout, whose
// reference would otherwise keep the type for ever.
int free_type(MPI_Datatype* type);

void retain(Layout& layout);
void release(Layout& layout);

inline std::size_t part_bytes(const Layout& layout) {
    return layout.bytes / layout.parts;
}
inline MPI_Aint part_extent(const Layout& layout) {
    return layout.extent / static_cast<MPI_Aint>(layout.parts);
}

// Copies `count` elements at `elements` to or from count * layout.bytes packed bytes. False: the host's MPI
// refused.
bool pack(const Layout& layout, const void* elements, std::size_t count, void* packed);
bool unpack(const Layout& layout, const void* packed, void* elements, std::size_t count);
// The same for `count` parts of elements.
bool pack_parts(const Layout& layout, const void* elements, std::size_t count, void* packed);
bool unpack_parts(const Layout& layout, const void* packed, void* elements, std::size_t count);

void open_datatypes();
void close_datatypes();

}  // namespace offpath::mpi
