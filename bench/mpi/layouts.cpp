#include "layouts.h"

#include <cstdint>

#include "mix.h"

namespace mpi_bench {

namespace {

// Returns the key of the stream that `from` sends to `to`; -1 means all ranks.
std::uint64_t stream_of(int from, int to) {
    return mix((static_cast<std::uint64_t>(from) << 32) + static_cast<std::uint32_t>(to + 2));
}

// Returns a block with the sum of the contributions of ranks `from` to `to` - 1 to block number `block`.
Block sum_of(std::size_t offset, std::size_t bytes, int from, int to, int block) {
    Block made{offset, bytes, {}, true};
    for (int rank = from; rank < to; ++rank)
        made.streams.push_back(stream_of(rank, block));
    return made;
}

double on_wire(std::size_t bytes, double times) {
    return static_cast<double>(bytes) * times;
}

}  // namespace

int next_of(int rank, int ranks) {
    return (rank + 1) % ranks;
}

int previous_of(int rank, int ranks) {
    return (rank + ranks - 1) % ranks;
}

std::vector<int> destinations_of(int rank, int ranks) {
    std::vector<int> peers = {next_of(rank, ranks)};
    if (ranks > 2) peers.push_back(previous_of(rank, ranks));
    return peers;
}

std::vector<int> sources_of(int rank, int ranks) {
    std::vector<int> peers = {previous_of(rank, ranks)};
    if (ranks > 2) peers.push_back(next_of(rank, ranks));
    return peers;
}

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
    layout.bytes_on_wire = on_wire(bytes, 1.0 * ranks * (ranks - 1));
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
    layout.bytes_on_wire = on_wire(bytes, ranks - 1);
    return layout;
}

Layout gather(std::size_t bytes, int rank, int ranks, bool descending) {
    Layout layout = all_gather(bytes, rank, ranks, descending);
    if (rank != 0) layout.receive.clear();
    layout.bytes_on_wire = on_wire(bytes, ranks - 1);
    return layout;
}

Layout scatter(std::size_t bytes, int rank, int ranks, bool descending) {
    Layout layout = all_to_all(bytes, 0, ranks, descending);
    layout.receive = {{0, bytes, {stream_of(0, rank)}}};
    if (rank != 0) layout.send.clear();
    layout.bytes_on_wire = on_wire(bytes, ranks - 1);
    return layout;
}

Layout all_reduce(std::size_t bytes, int rank, int ranks) {
    Layout layout;
    layout.send = {sum_of(0, bytes, rank, rank + 1, -1)};
    layout.receive = {sum_of(0, bytes, 0, ranks, -1)};
    layout.bytes_on_wire = on_wire(bytes, 2.0 * (ranks - 1));
    return layout;
}

Layout reduce(std::size_t bytes, int rank, int ranks) {
    Layout layout = all_reduce(bytes, rank, ranks);
    if (rank != 0) layout.receive.clear();
    layout.bytes_on_wire = on_wire(bytes, ranks - 1);
    return layout;
}

Layout reduce_scatter(std::size_t bytes, int rank, int ranks) {
    Layout layout;
    for (int block = 0; block < ranks; ++block) {
        layout.send.push_back(sum_of(bytes * block, bytes, rank, rank + 1, block));
        layout.counts.push_back(static_cast<int>(bytes / sizeof(double)));
    }
    layout.receive = {sum_of(0, bytes, 0, ranks, rank)};
    layout.bytes_on_wire = on_wire(bytes, 1.0 * ranks * (ranks - 1));
    return layout;
}

Layout scan(std::size_t bytes, int rank, int ranks, bool inclusive) {
    Layout layout = all_reduce(bytes, rank, ranks);
    layout.receive = {sum_of(0, bytes, 0, inclusive ? rank + 1 : rank, -1)};
    if (layout.receive[0].streams.empty()) layout.receive.clear();
    layout.bytes_on_wire = on_wire(bytes, ranks - 1);
    return layout;
}

Layout ring(std::size_t bytes, int rank, int ranks) {
    Layout layout;
    const int previous = previous_of(rank, ranks);
    layout.send = {{0, bytes, {stream_of(rank, next_of(rank, ranks))}}};
    layout.receive = {{0, bytes, {stream_of(previous, rank)}}};
    layout.bytes_on_wire = ranks > 1 ? on_wire(bytes, ranks) : 0;
    return layout;
}

Layout neighbour_all_to_all(std::size_t bytes, int rank, int ranks) {
    Layout layout;
    for (const int peer : destinations_of(rank, ranks)) {
        layout.send.push_back({bytes * layout.send.size(), bytes, {stream_of(rank, peer)}});
        layout.counts.push_back(static_cast<int>(bytes));
    }
    for (const int peer : sources_of(rank, ranks)) {
        layout.receive_offsets.push_back(static_cast<int>(bytes * layout.receive.size()));
        layout.receive.push_back({bytes * layout.receive.size(), bytes, {stream_of(peer, rank)}});
    }
    layout.send_offsets = layout.receive_offsets;
    if (ranks > 1)
        layout.bytes_on_wire = on_wire(bytes, 1.0 * ranks * static_cast<double>(layout.counts.size()));
    return layout;
}

Layout neighbour_all_gather(std::size_t bytes, int rank, int ranks) {
    Layout layout = neighbour_all_to_all(bytes, rank, ranks);
    layout.send = {{0, bytes, {stream_of(rank, -1)}}};
    const std::vector<int> sources = sources_of(rank, ranks);
    for (std::size_t i = 0; i < sources.size(); ++i)
        layout.receive[i].streams = {stream_of(sources[i], -1)};
    return layout;
}

}  // namespace mpi_bench
