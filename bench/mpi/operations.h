// The operations that the benchmark can time: the rows of the table of collectives that have a shape, a ring
// of messages, and the code that all share.
//
// An entry says how an operation lays out its buffers and how it is posted. Filling and verifying follow from
// the layout. Every block of a buffer carries one or more streams. A stream is a sequence of 64-bit words
// that its key generates. The words of a block are the sums of its streams' words: wrapping sums, or, for
// reductions, real ones.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/buffer.h"

namespace mpi_bench {

struct Block {
    std::size_t offset = 0, bytes = 0;
    std::vector<std::uint64_t> streams;
    bool real = false;  // the words are doubles
};

struct Layout {
    std::vector<Block> send, receive;
    // For vector collectives and messages: where the block of peer r starts, in bytes.
    std::vector<int> counts, send_offsets, receive_offsets;
    double bytes_on_wire = 0;  // what all ranks have to send to other ranks, at least
};

class Operation;

enum class Data : std::uint8_t { plain, summed };  // bytes, or doubles that are summed

struct Shape {
    const char* meaning_of_bytes;
    Data data;
    // `descending`: blocks in descending order of ranks, where they have displacements.
    Layout (*layout)(std::size_t bytes, int rank, int ranks, bool descending);
    bool among_neighbours = false;  // in a ring
};

struct OperationEntry {
    const char* name;
    Shape shape;
    bool descending;
    // Starts the operation and appends its requests.
    void (*post)(const Operation& operation, std::vector<MPI_Request>& requests);
};

const std::vector<OperationEntry>& operations();
// Those of the table of collectives; generated.
const std::vector<OperationEntry>& collectives();
std::vector<std::string> operation_names();

// One operation with buffers of a given size on all ranks. Calls of post() and wait() alternate. Collective.
class Operation {
  public:
    // Throws UsageError for sizes that the operation or MPI's counts cannot express.
    Operation(const std::string& name, std::size_t bytes, mpi_support::Allocator allocator);

    ~Operation();
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

    // Writes the data of round `round` into the send buffer, and garbage into the receive buffer.
    void prepare(std::uint64_t round);
    // Whether both buffers on this rank have the contents that round `round` must leave.
    bool verify(std::uint64_t round) const;

    void post() { entry_.post(*this, requests_); }
    void wait();

    const Layout& layout() const { return layout_; }
    void* send() const { return send_.as<void>(); }
    void* receive() const { return receive_.as<void>(); }
    // The buffer of a broadcast: rank 0 sends it, and the others receive into it.
    void* buffer() const { return rank_ == 0 ? send() : receive(); }
    int bytes() const { return bytes_; }
    // The arguments of the call: elements, their type, and for vector collectives an entry for each block.
    int count() const { return bytes_ / static_cast<int>(unit()); }
    MPI_Datatype type() const { return entry_.shape.data == Data::summed ? MPI_DOUBLE : MPI_BYTE; }
    const int* counts() const { return layout_.counts.data(); }
    const MPI_Datatype* types() const { return types_.data(); }
    const int* send_offsets() const { return layout_.send_offsets.data(); }
    const int* receive_offsets() const { return layout_.receive_offsets.data(); }
    const MPI_Aint* send_displacements() const { return send_displacements_.data(); }
    const MPI_Aint* receive_displacements() const { return receive_displacements_.data(); }
    int rank() const { return rank_; }
    int ranks() const { return ranks_; }
    MPI_Comm comm() const { return comm_; }

  private:
    // The number of bytes must be a multiple of this.
    std::size_t unit() const { return entry_.shape.data == Data::summed ? sizeof(double) : 1; }

    const OperationEntry& entry_;
    int bytes_ = 0, rank_ = 0, ranks_ = 1;
    MPI_Comm comm_ = MPI_COMM_WORLD;
    Layout layout_;
    std::vector<MPI_Datatype> types_;
    std::vector<MPI_Aint> send_displacements_, receive_displacements_;
    mpi_support::Buffer send_, receive_;
    std::vector<MPI_Request> requests_;
};

// Where a post function puts its next request.
MPI_Request* add(std::vector<MPI_Request>& requests);

void fill_block(unsigned char* buffer, const Block& block, std::uint64_t round);
bool check_block(const unsigned char* buffer, const Block& block, std::uint64_t round);

}  // namespace mpi_bench
