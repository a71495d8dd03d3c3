#include "minimd/files/distribution.h"

#include <gtest/gtest.h>

#include <random>

#include "minimd/report/summary.h"

namespace minimd {
namespace {

TEST(Owners, AreTheRanksWhoseSubdomainItIs) {
    const Vec3 box{3.7, 11.0 / 3.0, 29.0};
    const Decomposition decomposition(MPI_COMM_WORLD, box);
    const Owners owners(decomposition);
    std::mt19937_64 random(5);
    std::uniform_real_distribution<double> unit(0.0, 1.0);
    for (int i = 0; i < 2000; ++i) {
        Vec3 x{unit(random) * box[0], unit(random) * box[1], unit(random) * box[2]};
        // Many positions lie just at a border, where rounding decides.
        for (std::size_t d = 0; d < 3; ++d)
            if (i % 3 == 0) {
                const int grid = decomposition.grid()[d];
                x[d] = decomposition.lower_bound(static_cast<int>(d),
                                                 static_cast<int>(random() % static_cast<unsigned>(grid)));
                if (i % 2 == 0 && x[d] > 0.0) x[d] = std::nextafter(x[d], 0.0);
            }
        EXPECT_EQ(owners.of(x) == decomposition.rank(), decomposition.contains(x));
    }
}

TEST(Wrapped, IsInTheBox) {
    const Vec3 box{1.0, 0.1, 7.3};
    for (const double far : {-1e6, -7.3, -0.1, -1e-20, 0.0, 0.05, 0.1, 7.3, 14.7, 1e6}) {
        const Vec3 x = wrapped({far, far, far}, box);
        for (std::size_t d = 0; d < 3; ++d) {
            EXPECT_GE(x[d], 0.0);
            EXPECT_LT(x[d], box[d]);
            const double turns = (far - x[d]) / box[d];
            EXPECT_NEAR(turns, std::round(turns), 1e-6);
        }
    }
}

TEST(Ids, AreDealtEvenly) {
    for (const std::int64_t atoms : {1, 7, 8, 1000003})
        for (const int ranks : {1, 3, 8}) {
            std::int64_t next = 1;
            for (int rank = 0; rank < ranks; ++rank) {
                const IdRange ids = ids_of(rank, ranks, atoms);
                EXPECT_EQ(ids.first, next);
                EXPECT_LE(ids.last - ids.first, (atoms + ranks - 1) / ranks);
                next = ids.last;
            }
            EXPECT_EQ(next, atoms + 1);
        }
}

TEST(Exchanged, KeepsTheOrderOfEachSender) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::vector<AtomRecord> records;
    std::vector<int> destinations;
    for (int i = 0; i < 50; ++i) {
        AtomRecord record{};
        record.id = 1000 * rank + i;
        record.x = {1.0 * i, 2.0, 3.0};
        records.push_back(record);
        destinations.push_back(i * 7 % ranks);
    }
    std::vector<std::int64_t> expected;
    for (int from = 0; from < ranks; ++from)
        for (int i = 0; i < 50; ++i)
            if (i * 7 % ranks == rank) expected.push_back(1000 * from + i);
    std::vector<std::int64_t> ids;
    for (const AtomRecord& record : exchanged(records, destinations, MPI_COMM_WORLD))
        ids.push_back(record.id);
    EXPECT_EQ(ids, expected);
}

TEST(Summary, AddsUpAllRanks) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    Results results;
    results.atoms = 100;
    results.steps = 10;
    results.thermo = {{0, 1.0, 2.0, 3.0, 4.0}};
    results.times = {20.0 + rank, {10.0 + rank, 5.0 + rank}, {4.0, 3.0}, {2.0, 1.0}, 12.0 + rank, 0.5};
    results.counts.atoms = rank;
    const Summary summary = summarise(results, MPI_COMM_WORLD);
    EXPECT_EQ(summary.ranks, ranks);
    EXPECT_EQ(summary.times.total, 19.0 + ranks);
    EXPECT_NEAR(summary.times.force, 10.0 + 0.5 * (ranks - 1), 1e-12);
    EXPECT_EQ(summary.times.neighbor, 4.0);
    EXPECT_NEAR(summary.on_core.force, 5.0 + 0.5 * (ranks - 1), 1e-12);
    EXPECT_EQ(summary.on_core.neighbor, 3.0);
    EXPECT_EQ(summary.on_core.communication, 1.0);
    EXPECT_NEAR(summary.on_core.other(), 3.0, 1e-12);
    EXPECT_NEAR(summary.computing, 11.5 + 0.5 * (ranks - 1), 1e-12);
    EXPECT_NEAR(summary.performance(), 1000.0 / (19.0 + ranks), 1e-12);
    EXPECT_EQ(summary.local_atoms.least, 0.0);
    EXPECT_EQ(summary.local_atoms.most, ranks - 1.0);
    EXPECT_NEAR(summary.local_atoms.sum(ranks), 0.5 * ranks * (ranks - 1), 1e-9);
    int in_histogram = 0;
    for (const int of_bin : summary.local_atoms.histogram)
        in_histogram += of_bin;
    EXPECT_EQ(in_histogram, ranks);
    EXPECT_GE(summary.local_atoms.histogram.front(), 1);
    EXPECT_EQ(summary.local_atoms.histogram.back(), ranks > 1 ? 1 : 0);
    EXPECT_EQ(summary.neighbor.histogram.front(), ranks);
    ASSERT_EQ(summary.thermo.size(), 1u);
}

}  // namespace
}  // namespace minimd
