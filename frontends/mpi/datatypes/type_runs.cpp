#include "type_runs.h"

#include <algorithm>
#include <cstdint>

#include "datatypes.h"
#include "type_contents.h"

namespace offpath::mpi {
namespace {

// One element of an inner type, and the distance of the next.
struct Inner {
    std::vector<Run> runs;
    std::int64_t extent = 0;
};

// Appends elements to the runs of an outer type.
class Outer {
  public:
    Outer(std::vector<Run>& runs, const Inner& inner) : runs_(runs), inner_(inner) {
        const std::vector<Run>& of = inner.runs;
        plain_ =
            of.size() == 1 && of[0].offset == 0 && static_cast<std::int64_t>(of[0].bytes) == inner.extent;
    }
    // `count` elements, one after the other.
    void add(std::int64_t count, std::int64_t place) {
        if (count <= 0 || inner_.runs.empty()) return;
        if (plain_) return append(runs_, place, static_cast<std::size_t>(count * inner_.extent));
        for (std::int64_t i = 0; i < count; ++i)
            for (const Run& run : inner_.runs)
                append(runs_, place + i * inner_.extent + run.offset, run.bytes);
    }

  private:
    std::vector<Run>& runs_;
    const Inner& inner_;
    bool plain_ = false;
};

bool find_inner(MPI_Datatype type, Inner& inner) {
    MPI_Count lower = 0, extent = 0;
    PMPI_Type_get_extent_x(type, &lower, &extent);
    inner.extent = extent;
    return find_runs(type, inner.runs);
}

void find_named(MPI_Datatype type, std::vector<Run>& runs) {
    // The only predefined type with a gap inside.
    struct ShortAndInt {
        short value;
        int index;
    };
    if (type == MPI_SHORT_INT) {
        append(runs, 0, sizeof(short));
        append(runs, offsetof(ShortAndInt, index), sizeof(int));
    } else if (const std::size_t bytes = type_bytes(type); bytes > 0) {
        append(runs, 0, bytes);
    }
}

// The elements of the array that this rank has in one of its dimensions, as ranges of indices.
struct Range {
    std::int64_t first, count;
};
using Ranges = std::vector<Range>;

Ranges share_of(int distribution, std::int64_t argument, std::int64_t size, std::int64_t ranks,
                std::int64_t rank) {
    if (distribution == MPI_DISTRIBUTE_NONE) return {{0, size}};
    const bool given = argument != MPI_DISTRIBUTE_DFLT_DARG;
    if (distribution == MPI_DISTRIBUTE_BLOCK) {
        const std::int64_t block = given ? argument : (size + ranks - 1) / ranks;
        const std::int64_t first = std::min(rank * block, size);
        return {{first, std::min(block, size - first)}};
    }
    const std::int64_t block = given ? argument : 1;
    Ranges mine;
    for (std::int64_t first = rank * block; first < size; first += ranks * block)
        mine.push_back({first, std::min(block, size - first)});
    return mine;
}

// A part of an array: in each dimension, from the slowest to the fastest, its size and which indices it has.
struct ArrayPart {
    std::vector<std::int64_t> sizes;
    std::vector<Ranges> ranges;
    void reverse() {
        std::ranges::reverse(sizes);
        std::ranges::reverse(ranges);
    }
};

void add_part(const ArrayPart& part, std::size_t dimension, std::int64_t index, std::int64_t extent,
              Outer& outer) {
    const bool last = dimension + 1 == part.sizes.size();
    for (const Range& range : part.ranges[dimension]) {
        const std::int64_t first = index * part.sizes[dimension] + range.first;
        if (last) {
            outer.add(range.count, first * extent);
            continue;
        }
        for (std::int64_t i = 0; i < range.count; ++i)
            add_part(part, dimension + 1, first + i, extent, outer);
    }
}

ArrayPart subarray_of(const TypeContents& of) {
    const auto dimensions = static_cast<std::size_t>(of.integer(0));
    ArrayPart part;
    for (std::size_t i = 0; i < dimensions; ++i) {
        part.sizes.push_back(of.array_number(i));
        part.ranges.push_back({{of.array_number(2 * dimensions + i), of.array_number(dimensions + i)}});
    }
    if (of.last_integer() == MPI_ORDER_FORTRAN) part.reverse();
    return part;
}

ArrayPart distributed_array_of(const TypeContents& of) {
    const auto dimensions = static_cast<std::size_t>(of.integer(2));
    // With large counts, the sizes of the array are elsewhere.
    const std::size_t after = of.has_large_counts() ? 3 : 3 + dimensions;
    std::int64_t rank = of.integer(1);
    ArrayPart part;
    // The ranks are numbered in the order of C, whatever that of the array is.
    for (std::size_t i = dimensions; i-- > 0;) {
        const std::int64_t ranks = of.integer(after + 2 * dimensions + i);
        const std::int64_t size = of.has_large_counts() ? of.array_number(i) : of.integer(3 + i);
        part.sizes.push_back(size);
        part.ranges.push_back(share_of(static_cast<int>(of.integer(after + i)),
                                       of.integer(after + dimensions + i), size, ranks, rank % ranks));
        rank /= ranks;
    }
    if (of.last_integer() == MPI_ORDER_C) part.reverse();
    return part;
}

bool find_struct(const TypeContents& of, std::vector<Run>& runs) {
    for (std::size_t i = 0; i < of.types().size(); ++i) {
        Inner inner;
        if (!find_inner(of.types()[i], inner)) return false;
        const auto [count, place] = of.block(i);
        Outer(runs, inner).add(count, place);
    }
    return true;
}

}  // namespace

void append(std::vector<Run>& runs, MPI_Aint offset, std::size_t bytes) {
    if (!runs.empty() && runs.back().offset + static_cast<MPI_Aint>(runs.back().bytes) == offset) {
        runs.back().bytes += bytes;
    } else {
        runs.push_back({offset, bytes});
    }
}

bool find_runs(MPI_Datatype type, std::vector<Run>& runs) {
    const TypeContents of(type);
    switch (of.combiner()) {
        case MPI_COMBINER_NAMED:
        case MPI_COMBINER_F90_REAL:
        case MPI_COMBINER_F90_COMPLEX:
        case MPI_COMBINER_F90_INTEGER:
            find_named(type, runs);
            return true;
        case MPI_COMBINER_STRUCT:
            return find_struct(of, runs);
        default:
            break;
    }
    Inner inner;
    if (of.types().size() != 1 || !find_inner(of.types()[0], inner)) return false;
    Outer outer(runs, inner);
    const std::size_t blocks = of.combiner() == MPI_COMBINER_DUP || of.combiner() == MPI_COMBINER_RESIZED
                                   ? 1
                                   : static_cast<std::size_t>(of.number(0));
    switch (of.combiner()) {
        case MPI_COMBINER_DUP:
        case MPI_COMBINER_RESIZED:
            outer.add(1, 0);
            return true;
        case MPI_COMBINER_CONTIGUOUS:
            outer.add(of.number(0), 0);
            return true;
        case MPI_COMBINER_VECTOR:
        case MPI_COMBINER_HVECTOR: {
            const std::int64_t unit = of.combiner() == MPI_COMBINER_VECTOR ? inner.extent : 1;
            for (std::size_t i = 0; i < blocks; ++i)
                outer.add(of.number(1), static_cast<std::int64_t>(i) * of.place(2, 0) * unit);
            return true;
        }
        case MPI_COMBINER_INDEXED:
        case MPI_COMBINER_HINDEXED: {
            const std::int64_t unit = of.combiner() == MPI_COMBINER_INDEXED ? inner.extent : 1;
            for (std::size_t i = 0; i < blocks; ++i)
                outer.add(of.number(1 + i), of.place(1 + blocks + i, i) * unit);
            return true;
        }
        case MPI_COMBINER_INDEXED_BLOCK:
        case MPI_COMBINER_HINDEXED_BLOCK: {
            const std::int64_t unit = of.combiner() == MPI_COMBINER_INDEXED_BLOCK ? inner.extent : 1;
            for (std::size_t i = 0; i < blocks; ++i)
                outer.add(of.number(1), of.place(2 + i, i) * unit);
            return true;
        }
        case MPI_COMBINER_SUBARRAY:
            add_part(subarray_of(of), 0, 0, inner.extent, outer);
            return true;
        case MPI_COMBINER_DARRAY:
            add_part(distributed_array_of(of), 0, 0, inner.extent, outer);
            return true;
        default:
            return false;
    }
}

}  // namespace offpath::mpi
