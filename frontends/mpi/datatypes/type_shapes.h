// Shapes: a datatype as the pieces of memory that one element covers, in the order of its type map. They
// describe targets, because only the target's proxy sees the target's memory. They also pack and unpack
// origins that are not plain bytes.
//
// A shape is an attribute of its type, and its users hold it too, so the type may be freed at any time.
// Thread-safe.
#pragma once

#include <mpi.h>
#include <offpath/offpath.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "type_runs.h"

namespace offpath::mpi {

struct Shape {
    std::size_t bytes = 0;  // of one element
    MPI_Aint extent = 0;
    std::vector<Run> runs;                   // of one element; neighbours are joined
    MPI_Datatype basic = MPI_DATATYPE_NULL;  // the predefined type of which it consists; null: of several
    bool pairs = false;                      // of a value and an index, with a gap between or behind
    // Of pairs: whole elements with their gaps, as reductions need them.
    std::size_t whole_bytes = 0;
    std::vector<Run> whole_runs;

    bool plain(bool whole) const;
};
using ShapePointer = std::shared_ptr<const Shape>;

// Null: the type is not committed. For our own type of many elements of another, it is the shape of one of
// those.
ShapePointer shape_of(MPI_Datatype type);

// `count` elements of a type at an address. `whole`: pairs with their gaps.
struct Elements {
    ShapePointer shape;
    std::size_t count = 0;
    bool whole = false;

    const std::vector<Run>& runs() const { return whole ? shape->whole_runs : shape->runs; }
    std::size_t bytes() const { return count * (whole ? shape->whole_bytes : shape->bytes); }
    bool plain() const { return count == 0 || shape->plain(whole) || (count == 1 && is_one_run()); }
    bool is_one_run() const { return runs().size() == 1 && runs()[0].offset == 0; }
    void pack(const void* elements, void* packed) const;
    void unpack(const void* packed, void* elements) const;
    // The pieces that they cover, starting at `offset`.
    std::vector<offpath_segment_t> segments(std::uint64_t offset) const;
    // The largest possible number of these pieces.
    std::size_t pieces() const { return shape->plain(whole) ? 1 : count * runs().size(); }
};

// `count` elements of `type`. Without a shape the type is not committed.
Elements elements_of(MPI_Datatype type, int count, bool whole);

void open_shapes();
void close_shapes();

}  // namespace offpath::mpi
