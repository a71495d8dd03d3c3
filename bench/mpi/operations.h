// The operations that the benchmark can time: one row of a table each, and the code common to all rows.
//
// A row says how an operation lays out its buffers and how it is posted; filling and verifying follow from
// the layout: every block of a buffer carries one or more streams, a stream is a sequence of 64-bit words
// made from its key, and a block's words are the sums of its streams' words, wrapping or, for reductions,
// real.
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
    // For vector collectives and for messages: where each block of peer r starts, in bytes.
    std::vector<int> counts, send_offsets, receive_offsets;
    double bytes_on_wire = 0;  // sent by all ranks to other ranks, at least
};

class Operation;

struct OperationEntry {
    const char* name;
    const char* meaning_of_bytes;
    std::size_t unit;  // bytes have to be a multiple of this
    Layout (*layout)(std::size_t bytes, int rank, int ranks);
    // Starts the operation and adds its requests.
    void (*post)(const Operation& operation, std::vector<MPI_Request>& requests);
};

const std::vector<OperationEntry>& operations();
std::vector<std::string> operation_names();

// One operation with buffers of a given size on all ranks. post() and wait() alternate. Collective.
class Operation {
  public:
    // Throws UsageError for sizes that the operation or MPI's counts cannot express.
    Operation(const std::string& name, std::size_t bytes, mpi_support::Allocator allocator);

    ~Operation();
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

    // Writes the data of round `round` into the send buffer, and rubbish into the receive buffer.
    void prepare(std::uint64_t round);
    // Whether both buffers now hold, on this rank, what round `round` has to leave there.
    bool verify(std::uint64_t round) const;

    void post() { entry_.post(*this, requests_); }
    void wait();

    const Layout& layout() const { return layout_; }
    void* send() const { return send_.as<void>(); }
    void* receive() const { return receive_.as<void>(); }
    int bytes() const { return bytes_; }
    int rank() const { return rank_; }
    int ranks() const { return ranks_; }
    MPI_Comm comm() const { return comm_; }

  private:
    const OperationEntry& entry_;
    int bytes_ = 0, rank_ = 0, ranks_ = 1;
    MPI_Comm comm_ = MPI_COMM_WORLD;
    Layout layout_;
    mpi_support::Buffer send_, receive_;
    std::vector<MPI_Request> requests_;
};

void fill_block(unsigned char* buffer, const Block& block, std::uint64_t round);
bool check_block(const unsigned char* buffer, const Block& block, std::uint64_t round);

}  // namespace mpi_bench
