#include "minimd/files/distribution.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace minimd {

Vec3 wrapped(const Vec3& x, const Vec3& box) {
    Vec3 result = x;
    for (std::size_t d = 0; d < 3; ++d) {
        result[d] -= std::floor(x[d] / box[d]) * box[d];
        // Rounding may give the box's upper side, or a value below 0.
        if (result[d] >= box[d] || result[d] < 0.0) result[d] = 0.0;
    }
    return result;
}

Owners::Owners(const Decomposition& decomposition) : decomposition_(decomposition) {
    std::vector<int> places(3 * static_cast<std::size_t>(decomposition.ranks()));
    MPI_Allgather(decomposition.place().data(), 3, MPI_INT, places.data(), 3, MPI_INT, decomposition.comm());
    rank_at_.resize(static_cast<std::size_t>(decomposition.ranks()));
    const auto& grid = decomposition.grid();
    for (int rank = 0; rank < decomposition.ranks(); ++rank) {
        const int* place = &places[3 * static_cast<std::size_t>(rank)];
        rank_at_[static_cast<std::size_t>((place[0] * grid[1] + place[1]) * grid[2] + place[2])] = rank;
    }
}

int Owners::of(const Vec3& x) const {
    const auto& grid = decomposition_.grid();
    int at = 0;
    for (int d = 0; d < 3; ++d) {
        const auto dim = static_cast<std::size_t>(d);
        int place =
            std::clamp(static_cast<int>(x[dim] / decomposition_.box()[dim] * grid[dim]), 0, grid[dim] - 1);
        while (place > 0 && x[dim] < decomposition_.lower_bound(d, place))
            --place;
        while (place + 1 < grid[dim] && x[dim] >= decomposition_.lower_bound(d, place + 1))
            ++place;
        at = at * grid[dim] + place;
    }
    return rank_at_[static_cast<std::size_t>(at)];
}

std::vector<AtomRecord> exchanged(const std::vector<AtomRecord>& records,
                                  const std::vector<int>& destinations, MPI_Comm comm) {
    int ranks = 1;
    MPI_Comm_size(comm, &ranks);
    const auto count = static_cast<std::size_t>(ranks);
    std::vector<int> sent(count), received(count), sent_at(count + 1), received_at(count + 1);
    for (const int destination : destinations)
        ++sent[static_cast<std::size_t>(destination)];
    MPI_Alltoall(sent.data(), 1, MPI_INT, received.data(), 1, MPI_INT, comm);
    for (std::size_t r = 0; r < count; ++r) {
        sent_at[r + 1] = sent_at[r] + sent[r];
        received_at[r + 1] = received_at[r] + received[r];
    }
    std::vector<AtomRecord> outgoing(records.size());
    std::vector<int> next(sent_at.begin(), sent_at.end() - 1);
    for (std::size_t i = 0; i < records.size(); ++i)
        outgoing[static_cast<std::size_t>(next[static_cast<std::size_t>(destinations[i])]++)] = records[i];
    std::vector<AtomRecord> arrived(static_cast<std::size_t>(received_at[count]));
    const RecordType type;
    MPI_Alltoallv(outgoing.data(), sent.data(), sent_at.data(), type.get(), arrived.data(), received.data(),
                  received_at.data(), type.get(), comm);
    return arrived;
}

IdRange ids_of(int rank, int ranks, std::int64_t atoms) {
    const std::int64_t each = atoms / ranks, more = atoms % ranks;
    const auto first_of = [&](std::int64_t r) { return 1 + each * r + std::min(r, more); };
    return {first_of(rank), first_of(rank + 1)};
}

std::vector<AtomRecord> in_id_order(const AtomList& atoms, std::int64_t all_atoms, const Vec3& box,
                                    MPI_Comm comm) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
    std::int64_t wrong = none;
    std::vector<AtomRecord> records;
    std::vector<int> destinations;
    for (std::size_t i = 0; i < atoms.size(); ++i) {
        const std::int64_t id = atoms.id[i];
        if (id < 1 || id > all_atoms) {
            wrong = std::min(wrong, id);
            continue;
        }
        // The first `more` ranks have one id more than the others.
        const std::int64_t each = all_atoms / ranks, more = all_atoms % ranks;
        const std::int64_t owner =
            id - 1 < more * (each + 1) ? (id - 1) / (each + 1) : (id - 1 - more) / each;
        records.push_back(record_of(atoms, i));
        records.back().x = wrapped(atoms.x[i], box);
        destinations.push_back(static_cast<int>(owner));
    }
    records = exchanged(records, destinations, comm);
    std::sort(records.begin(), records.end(),
              [](const AtomRecord& a, const AtomRecord& b) { return a.id < b.id; });
    const IdRange ids = ids_of(rank, ranks, all_atoms);
    std::int64_t expected = ids.first;
    for (const AtomRecord& record : records) {
        if (record.id != expected) break;
        ++expected;
    }
    if (expected != ids.last || static_cast<std::int64_t>(records.size()) != ids.last - ids.first)
        wrong = std::min(wrong, expected);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT64_T, MPI_MIN, comm);
    if (wrong != none)
        throw std::runtime_error("atoms to be written: id " + std::to_string(wrong) + " of 1 to " +
                                 std::to_string(all_atoms) + " is missing, there twice, or impossible");
    return records;
}

}  // namespace minimd
