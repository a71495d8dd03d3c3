#include "operations.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "support/mpi_program.h"

namespace mpi_bench {

namespace {

constexpr int kTag = 7;

std::uint64_t mix(std::uint64_t key) {
    key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9ULL;
    key = (key ^ (key >> 27)) * 0x94d049bb133111ebULL;
    return key ^ (key >> 31);
}

// Stream keys: what `from` sends to `to`; to -1 stands for everybody.
std::uint64_t stream_of(int from, int to) {
    return mix((static_cast<std::uint64_t>(from) << 32) + static_cast<std::uint32_t>(to + 2));
}

std::uint64_t word_of(const Block& block, std::uint64_t round, std::size_t index) {
    std::uint64_t word = 0;
    for (const std::uint64_t stream : block.streams)
        word += mix(stream + round * 0x9e3779b97f4a7c15ULL + index);
    return word;
}

int next_of(int rank, int ranks) {
    return (rank + 1) % ranks;
}
int previous_of(int rank, int ranks) {
    return (rank + ranks - 1) % ranks;
}

// One block per rank on both sides; vector collectives take them in descending order of ranks, so that
// displacements matter.
Layout all_to_all(std::size_t bytes, int rank, int ranks, bool descending) {
    Layout layout;
    for (int peer = 0; peer < ranks; ++peer) {
        const std::size_t offset = bytes * (descending ? ranks - 1 - peer : peer);
        layout.send.push_back({offset, bytes, {stream_of(rank, peer)}});
        layout.receive.push_back({offset, bytes, {stream_of(peer, rank)}});
        layout.counts.push_back(static_cast<int>(bytes));
        layout.send_offsets.push_back(static_cast<int>(offset));
        layout.receive_offsets.push_back(static_cast<int>(offset));
    }
    layout.bytes_on_wire = static_cast<double>(bytes) * ranks * (ranks - 1);
    return layout;
}

Layout all_gather(std::size_t bytes, int rank, int ranks, bool descending) {
    Layout layout = all_to_all(bytes, rank, ranks, descending);
    layout.send = {{0, bytes, {stream_of(rank, -1)}}};
    for (int peer = 0; peer < ranks; ++peer)
        layout.receive[peer].streams = {stream_of(peer, -1)};
    return layout;
}

Layout broadcast(std::size_t bytes, int rank, int ranks) {
    Layout layout;
    (rank == 0 ? layout.send : layout.receive) = {{0, bytes, {stream_of(0, -1)}}};
    layout.bytes_on_wire = static_cast<double>(bytes) * (ranks - 1);
    return layout;
}

Layout all_reduce(std::size_t bytes, int rank, int ranks) {
    Layout layout;
    layout.send = {{0, bytes, {stream_of(rank, -1)}}};
    layout.receive = {{0, bytes, {}}};
    for (int peer = 0; peer < ranks; ++peer)
        layout.receive[0].streams.push_back(stream_of(peer, -1));
    layout.bytes_on_wire = 2.0 * static_cast<double>(bytes) * (ranks - 1);
    return layout;
}

Layout ring(std::size_t bytes, int rank, int ranks) {
    Layout layout;
    const int previous = previous_of(rank, ranks);
    layout.send = {{0, bytes, {stream_of(rank, next_of(rank, ranks))}}};
    layout.receive = {{0, bytes, {stream_of(previous, rank)}}};
    layout.bytes_on_wire = ranks > 1 ? static_cast<double>(bytes) * ranks : 0;
    return layout;
}

MPI_Request* add(std::vector<MPI_Request>& requests) {
    return &requests.emplace_back(MPI_REQUEST_NULL);
}

const std::vector<OperationEntry> kOperations = {
    {"ialltoall", "from each rank to each rank", 1,
     [](std::size_t bytes, int rank, int ranks) { return all_to_all(bytes, rank, ranks, false); },
     [](const Operation& op, std::vector<MPI_Request>& requests) {
         MPI_Ialltoall(op.send(), op.bytes(), MPI_BYTE, op.receive(), op.bytes(), MPI_BYTE, MPI_COMM_WORLD,
                       add(requests));
     }},
    {"ialltoallv", "from each rank to each rank", 1,
     [](std::size_t bytes, int rank, int ranks) { return all_to_all(bytes, rank, ranks, true); },
     [](const Operation& op, std::vector<MPI_Request>& requests) {
         const Layout& at = op.layout();
         MPI_Ialltoallv(op.send(), at.counts.data(), at.send_offsets.data(), MPI_BYTE, op.receive(),
                        at.counts.data(), at.receive_offsets.data(), MPI_BYTE, MPI_COMM_WORLD, add(requests));
     }},
    {"iallgather", "contributed by each rank", 1,
     [](std::size_t bytes, int rank, int ranks) { return all_gather(bytes, rank, ranks, false); },
     [](const Operation& op, std::vector<MPI_Request>& requests) {
         MPI_Iallgather(op.send(), op.bytes(), MPI_BYTE, op.receive(), op.bytes(), MPI_BYTE, MPI_COMM_WORLD,
                        add(requests));
     }},
    {"iallgatherv", "contributed by each rank", 1,
     [](std::size_t bytes, int rank, int ranks) { return all_gather(bytes, rank, ranks, true); },
     [](const Operation& op, std::vector<MPI_Request>& requests) {
         const Layout& at = op.layout();
         MPI_Iallgatherv(op.send(), op.bytes(), MPI_BYTE, op.receive(), at.counts.data(),
                         at.receive_offsets.data(), MPI_BYTE, MPI_COMM_WORLD, add(requests));
     }},
    {"ibcast", "in the message, from rank 0", 1, broadcast,
     [](const Operation& op, std::vector<MPI_Request>& requests) {
         MPI_Ibcast(op.rank() == 0 ? op.send() : op.receive(), op.bytes(), MPI_BYTE, 0, MPI_COMM_WORLD,
                    add(requests));
     }},
    {"ibarrier", "ignored", 1, [](std::size_t, int, int) { return Layout{}; },
     [](const Operation&, std::vector<MPI_Request>& requests) {
         MPI_Ibarrier(MPI_COMM_WORLD, add(requests));
     }},
    {"iallreduce", "in each rank's vector of 64-bit integers", sizeof(std::uint64_t), all_reduce,
     [](const Operation& op, std::vector<MPI_Request>& requests) {
         MPI_Iallreduce(op.send(), op.receive(), op.bytes() / static_cast<int>(sizeof(std::uint64_t)),
                        MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD, add(requests));
     }},
    {"isend", "from each rank to the next (MPI_Isend and MPI_Irecv in a ring)", 1, ring,
     [](const Operation& op, std::vector<MPI_Request>& requests) {
         MPI_Irecv(op.receive(), op.bytes(), MPI_BYTE, previous_of(op.rank(), op.ranks()), kTag,
                   MPI_COMM_WORLD, add(requests));
         MPI_Isend(op.send(), op.bytes(), MPI_BYTE, next_of(op.rank(), op.ranks()), kTag, MPI_COMM_WORLD,
                   add(requests));
     }},
};

const OperationEntry& find_operation(const std::string& name) {
    for (const OperationEntry& entry : kOperations)
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

const std::vector<OperationEntry>& operations() {
    return kOperations;
}

std::vector<std::string> operation_names() {
    std::vector<std::string> names;
    for (const OperationEntry& entry : kOperations)
        names.emplace_back(entry.name);
    return names;
}

Operation::Operation(const std::string& name, std::size_t bytes, mpi_support::Allocator allocator)
    : entry_(find_operation(name)) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    if (bytes % entry_.unit != 0)
        throw mpi_support::UsageError("--bytes " + std::to_string(bytes) + ": " + name +
                                      " needs a multiple of " + std::to_string(entry_.unit));
    if (bytes > static_cast<std::size_t>(std::numeric_limits<int>::max()) / ranks_)
        throw mpi_support::UsageError("--bytes " + std::to_string(bytes) + ": at most " +
                                      std::to_string(std::numeric_limits<int>::max() / ranks_) + " with " +
                                      std::to_string(ranks_) + " ranks, the range of MPI's displacements");
    bytes_ = static_cast<int>(bytes);
    layout_ = entry_.layout(bytes, rank_, ranks_);
    send_ = mpi_support::Buffer(extent(layout_.send), allocator);
    receive_ = mpi_support::Buffer(extent(layout_.receive), allocator);
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
