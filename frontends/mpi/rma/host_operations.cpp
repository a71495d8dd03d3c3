#include "host_operations.h"

#include <algorithm>
#include <vector>

namespace offpath::mpi {
namespace {

using Kind = OneSidedOperation::Kind;

// The most bytes and pieces of one call of the host's MPI.
constexpr std::size_t most_bytes_of_call = std::size_t{1} << 30;
constexpr std::size_t most_pieces_of_call = std::size_t{1} << 18;
// Open MPI 4.1 gives wrong results of larger MPI_Get_accumulate calls between nodes.
constexpr std::size_t most_fetched_bytes = 4096;

// A part of an operation: pieces of the target, and where its bytes begin in origin and result.
struct OperationPart {
    std::vector<int> elements;
    std::vector<MPI_Aint> offsets;  // in bytes, in the target's memory
    std::size_t at = 0, bytes = 0;
};

// The predefined type in whose elements the host's MPI moves or combines the bytes, and its size with gaps.
MPI_Datatype element_of(const OneSidedOperation& operation, std::size_t& size) {
    const bool moves = operation.kind == Kind::put || operation.kind == Kind::get;
    if (moves || operation.basic == MPI_DATATYPE_NULL) {
        size = 1;
        return MPI_BYTE;
    }
    MPI_Aint lower = 0, extent = 1;
    int bytes = 1;
    PMPI_Type_get_extent(operation.basic, &lower, &extent);
    PMPI_Type_size(operation.basic, &bytes);
    size = static_cast<std::size_t>(operation.at.whole ? extent : bytes);
    return operation.basic;
}

// Without the first `skipped` bytes.
std::vector<OperationPart> parts_of(const OneSidedOperation& operation, std::size_t element,
                                    std::size_t skipped) {
    const std::size_t limit =
        (operation.kind == Kind::get_accumulate ? most_fetched_bytes : most_bytes_of_call) / element *
        element;
    std::vector<OperationPart> parts(1);
    parts.back().at = skipped;
    std::size_t at = 0;
    for (const offpath_segment_t& segment : operation.at.segments(operation.offset)) {
        std::uint64_t done = std::min<std::uint64_t>(segment.bytes, skipped - std::min(skipped, at));
        at += done;
        while (done < segment.bytes) {
            if (parts.back().bytes == limit || parts.back().elements.size() == most_pieces_of_call)
                parts.push_back({{}, {}, at, 0});
            OperationPart& part = parts.back();
            const std::size_t bytes =
                std::min<std::size_t>(segment.bytes - done, std::max(limit, element) - part.bytes);
            part.elements.push_back(static_cast<int>(bytes / element));
            part.offsets.push_back(static_cast<MPI_Aint>(segment.offset + done));
            part.bytes += bytes;
            done += bytes;
            at += bytes;
        }
    }
    return parts;
}

int call_host(Window& window, const OneSidedOperation& operation, const void* origin, void* result,
              const OperationPart& part, MPI_Datatype element, std::size_t size) {
    const int count = static_cast<int>(part.bytes / size);
    const int target = operation.target;
    const auto unit = static_cast<MPI_Aint>(window.peers[static_cast<std::size_t>(target)].disp_unit);
    // Displacements count in the target's unit, which pieces need not be multiples of.
    const bool simple = part.elements.size() == 1 && part.offsets[0] % unit == 0;
    const MPI_Aint base = simple ? part.offsets[0] / unit : window.dynamic ? part.offsets[0] : 0;
    MPI_Datatype there = element;
    if (!simple) {
        std::vector<MPI_Aint> offsets = part.offsets;
        for (MPI_Aint& offset : offsets)
            offset -= base * unit;
        PMPI_Type_create_hindexed(static_cast<int>(offsets.size()), part.elements.data(), offsets.data(),
                                  element, &there);
        PMPI_Type_commit(&there);
    }
    const int times = simple ? count : 1;
    int error = MPI_SUCCESS;
    switch (operation.kind) {
        case Kind::put:
            error = PMPI_Put(origin, count, element, target, base, times, there, window.host);
            break;
        case Kind::get:
            error = PMPI_Get(result, count, element, target, base, times, there, window.host);
            break;
        case Kind::accumulate:
            error = PMPI_Accumulate(origin, count, element, target, base, times, there, operation.op,
                                    window.host);
            break;
        case Kind::get_accumulate:
            error = PMPI_Get_accumulate(origin, origin == nullptr ? 0 : count, element, result, count,
                                        element, target, base, times, there, operation.op, window.host);
            break;
        case Kind::compare_swap:
            error =
                PMPI_Compare_and_swap(origin, operation.compare, result, element, target, base, window.host);
            break;
    }
    if (!simple) PMPI_Type_free(&there);
    return error;
}

}  // namespace

int execute_by_host(Window& window, const OneSidedOperation& operation, bool waits, std::uint64_t skipped) {
    std::size_t size = 1;
    const MPI_Datatype element = element_of(operation, size);
    const bool packs = !operation.origin.is_plain(), unpacks = !operation.result.is_plain();
    std::vector<char> packed(packs ? operation.at.bytes() : 0), fetched(unpacks ? operation.at.bytes() : 0);
    if (packs) operation.origin.elements.pack(operation.origin.address, packed.data());
    const void* const origin = packs ? packed.data() : operation.origin.address;
    void* const result = unpacks ? fetched.data() : operation.result.address;
    int error = MPI_SUCCESS;
    for (const OperationPart& part : parts_of(operation, size, skipped)) {
        const int called = call_host(window, operation, offset_by(origin, part.at),
                                     offset_by(result, part.at), part, element, size);
        error = first_error(error, called);
    }
    if (waits || packs || unpacks) error = first_error(error, PMPI_Win_flush(operation.target, window.host));
    if (unpacks && error == MPI_SUCCESS)
        operation.result.elements.unpack(fetched.data(), operation.result.address);
    return error;
}

}  // namespace offpath::mpi
