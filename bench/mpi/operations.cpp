#include "operations.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "layouts.h"
#include "mix.h"
#include "support/mpi_program.h"

namespace mpi_bench {

namespace {

std::uint64_t word_of_stream(std::uint64_t stream, std::uint64_t round, std::size_t index) {
    return mix(stream + round * 0x9e3779b97f4a7c15ULL + index);
}

// Reals are whole numbers below 2^32, so sums of thousands of them are exact in any order.
std::uint64_t word_of(const Block& block, std::uint64_t round, std::size_t index) {
    std::uint64_t word = 0;
    double sum = 0;
    for (const std::uint64_t stream : block.streams) {
        const std::uint64_t own = word_of_stream(stream, round, index);
        word += own;
        sum += static_cast<double>(own >> 32);
    }
    return block.real ? std::bit_cast<std::uint64_t>(sum) : word;
}

// A ring for the neighbourhood operations, the world for the others.
MPI_Comm communicator_for(const Shape& shape, int rank, int ranks) {
    MPI_Comm comm = MPI_COMM_WORLD;
    if (!shape.among_neighbours) return comm;
    const std::vector<int> to = destinations_of(rank, ranks), from = sources_of(rank, ranks);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, static_cast<int>(from.size()), from.data(), MPI_UNWEIGHTED,
                                   static_cast<int>(to.size()), to.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                   &comm);
    return comm;
}

const OperationEntry& find_operation(const std::string& name) {
    for (const OperationEntry& entry : operations())
        if (name == entry.name) return entry;
    throw mpi_support::UsageError("unknown operation " + name);
}

std::size_t extent(const std::vector<Block>& blocks) {
    std::size_t bytes = 0;
    for (const Block& block : blocks)
        bytes = std::max(bytes, block.offset + block.bytes);
    return bytes;
}

}  // namespace

std::vector<std::string> operation_names() {
    std::vector<std::string> names;
    for (const OperationEntry& entry : operations())
        names.emplace_back(entry.name);
    return names;
}

Operation::Operation(const std::string& name, std::size_t bytes, mpi_support::Allocator allocator)
    : entry_(find_operation(name)) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    if (bytes % unit() != 0)
        throw mpi_support::UsageError("--bytes " + std::to_string(bytes) + ": " + name +
                                      " needs a multiple of " + std::to_string(unit()));
    if (bytes > static_cast<std::size_t>(std::numeric_limits<int>::max()) / ranks_)
        throw mpi_support::UsageError("--bytes " + std::to_string(bytes) + ": at most " +
                                      std::to_string(std::numeric_limits<int>::max() / ranks_) + " with " +
                                      std::to_string(ranks_) + " ranks, the range of MPI's displacements");
    bytes_ = static_cast<int>(bytes);
    comm_ = communicator_for(entry_.shape, rank_, ranks_);
    layout_ = entry_.shape.layout(bytes, rank_, ranks_, entry_.descending);
    types_.assign(layout_.counts.size(), type());
    send_displacements_.assign(layout_.send_offsets.begin(), layout_.send_offsets.end());
    receive_displacements_.assign(layout_.receive_offsets.begin(), layout_.receive_offsets.end());
    send_ = mpi_support::Buffer(extent(layout_.send), allocator);
    receive_ = mpi_support::Buffer(extent(layout_.receive), allocator);
}

Operation::~Operation() {
    if (comm_ != MPI_COMM_WORLD) MPI_Comm_free(&comm_);
}

void Operation::prepare(std::uint64_t round) {
    for (const Block& block : layout_.send)
        fill_block(send_.as(), block, round);
    std::memset(receive_.as(), 0xa5, receive_.bytes());
}

bool Operation::verify(std::uint64_t round) const {
    const auto right_in = [round](const mpi_support::Buffer& buffer) {
        return [&buffer, round](const Block& block) { return check_block(buffer.as(), block, round); };
    };
    return std::all_of(layout_.send.begin(), layout_.send.end(), right_in(send_)) &&
           std::all_of(layout_.receive.begin(), layout_.receive.end(), right_in(receive_));
}

void Operation::wait() {
    if (requests_.size() == 1) {
        MPI_Wait(requests_.data(), MPI_STATUS_IGNORE);
    } else {
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    }
    requests_.clear();
}

MPI_Request* add(std::vector<MPI_Request>& requests) {
    return &requests.emplace_back(MPI_REQUEST_NULL);
}

void fill_block(unsigned char* buffer, const Block& block, std::uint64_t round) {
    for (std::size_t at = 0; at < block.bytes; at += sizeof(std::uint64_t)) {
        const std::uint64_t word = word_of(block, round, at);
        std::memcpy(buffer + block.offset + at, &word, std::min(sizeof word, block.bytes - at));
    }
}

bool check_block(const unsigned char* buffer, const Block& block, std::uint64_t round) {
    for (std::size_t at = 0; at < block.bytes; at += sizeof(std::uint64_t)) {
        const std::uint64_t word = word_of(block, round, at);
        if (std::memcmp(buffer + block.offset + at, &word, std::min(sizeof word, block.bytes - at)) != 0)
            return false;
    }
    return true;
}

}  // namespace mpi_bench
