// Every pair within range is listed: once, or once from each side.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "engine.h"
#include "systems.h"

namespace minimd {
namespace {

// An atom, another atom, and how many boxes away that atom's image is.
using Directed = std::array<std::int64_t, 5>;

// Returns all ranks' records, sorted, on rank 0, and nothing on the other ranks.
std::vector<Directed> at_root(const std::vector<Directed>& mine) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int count = static_cast<int>(5 * mine.size());
    std::vector<int> counts(static_cast<std::size_t>(ranks)), places(counts.size());
    MPI_Gather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
    int sum = 0;
    for (std::size_t r = 0; r < counts.size(); ++r) {
        places[r] = sum;
        sum += counts[r];
    }
    std::vector<Directed> all(static_cast<std::size_t>(sum / 5));
    MPI_Gatherv(mine.data(), count, MPI_INT64_T, all.data(), counts.data(), places.data(), MPI_INT64_T, 0,
                MPI_COMM_WORLD);
    std::sort(all.begin(), all.end());
    return all;
}

// Returns the pairs closer than `range` in this rank's lists, as the kernels' masks select them.
template <typename Real>
std::vector<Directed> listed(Engine<Real>& engine, const AtomList& atoms, const Vec3& box, double range) {
    Particles<Real>& p = engine.particles;
    AlignedVector<Real> ids(static_cast<std::size_t>(p.slots), Real{0});
    for (std::int32_t s = 0; s < p.local_slots; ++s)
        ids[static_cast<std::size_t>(s)] = static_cast<Real>(p.id[static_cast<std::size_t>(s)]);
    engine.neighborhood.halo().start_update_scalar(ids.data());
    engine.neighborhood.halo().finish_update_scalar(ids.data());

    std::vector<Directed> records;
    const int lanes = p.layout.lanes;
    const auto id_of = [&](std::int32_t slot) {
        return static_cast<std::int64_t>(ids[static_cast<std::size_t>(slot)]);
    };
    const auto record = [&](std::int32_t i, std::int32_t j) {
        const std::int64_t a = id_of(i), b = id_of(j);
        const Vec3 xi = engine.get(p.x, i), xj = engine.get(p.x, j);
        Directed directed{a, b, 0, 0, 0};
        for (std::size_t d = 0; d < 3; ++d) {
            const double lattice =
                atoms.x[static_cast<std::size_t>(b - 1)][d] - atoms.x[static_cast<std::size_t>(a - 1)][d];
            directed[2 + d] = std::llround((xj[d] - xi[d] - lattice) / box[d]);
        }
        records.push_back(directed);
    };
    const auto walk = [&](const PairList& list, bool both_sides) {
        for (const PairRow& row : list.rows)
            for (std::int32_t b = row.begin; b < row.end; ++b)
                for (std::int32_t i = row.cluster * cluster_size; i < (row.cluster + 1) * cluster_size; ++i)
                    for (std::int32_t j = list.blocks[static_cast<std::size_t>(b)] * lanes;
                         j < (list.blocks[static_cast<std::size_t>(b)] + 1) * lanes; ++j) {
                        if (id_of(i) == 0 || id_of(j) == 0) continue;
                        if (b < row.begin + row.masked && !(both_sides ? j > i : j != i)) continue;
                        const Vec3 xi = engine.get(p.x, i), xj = engine.get(p.x, j);
                        if (std::hypot(xi[0] - xj[0], xi[1] - xj[1], xi[2] - xj[2]) >= range) continue;
                        record(i, j);
                        if (both_sides) record(j, i);
                    }
    };
    using Shell = typename Engine<Real>::Shell;
    const Shell shell = engine.neighborhood.shell();
    for (const PairLists& lists : engine.neighborhood.lists()) {
        walk(lists.interior, shell != Shell::full);
        walk(lists.boundary, shell == Shell::eighth);
    }
    return records;
}

std::vector<Directed> expected(const AtomList& atoms, const Vec3& box, double range) {
    std::vector<Directed> records;
    for_each_pair(atoms, box, range,
                  [&](std::size_t i, std::size_t j, const std::array<int, 3>& image, const Vec3&, double) {
                      records.push_back({atoms.id[i], atoms.id[j], image[0], image[1], image[2]});
                      records.push_back({atoms.id[j], atoms.id[i], -image[0], -image[1], -image[2]});
                  });
    std::sort(records.begin(), records.end());
    return records;
}

struct SearchCase {
    const char* name;
    Vec3 box;
    double spacing;
};

const SearchCase search_cases[] = {
    {"ordinary", {9.1, 8.3, 7.7}, 1.05},
    {"several images of an atom", {2.3, 4.1, 3.2}, 1.0},
    {"subdomains thinner than the range", {12.0, 2.6, 2.7}, 1.1},
    {"hardly any atoms", {9.0, 9.0, 9.0}, 4.6},
};

template <typename Real>
void check(int half_neigh, bool ghost_newton) {
    for (const SearchCase& each : search_cases) {
        const AtomList atoms = jittered(each.box, each.spacing, 0.4);
        // The range is a little shorter than the one asked for, because single precision rounds.
        const double range = Settings{}.list_cutoff() * (1 - 1e-6);
        int rank = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        const std::vector<Directed> wanted =
            rank == 0 ? expected(atoms, each.box, range) : std::vector<Directed>{};
        for (const int lanes : usable_lanes<Real>())
            for (const int threads : thread_counts()) {
                SCOPED_TRACE(testing::Message()
                             << each.name << ", " << lanes << " lanes, " << threads << " threads");
                Settings settings;
                settings.half_neigh = half_neigh;
                settings.ghost_newton = ghost_newton;
                settings.lanes = lanes;
                settings.threads = threads;
                Engine<Real> engine(settings, each.box, atoms);
                engine.rebuild();
                const std::vector<Directed> found = at_root(listed(engine, atoms, each.box, range));
                if (rank != 0) continue;
                ASSERT_EQ(found.size(), wanted.size());
                ASSERT_TRUE(found == wanted);
            }
    }
}

TEST(PairSearch, ListsEveryPairOnceWithAnEighthShell) {
    check<double>(1, true);
}
TEST(PairSearch, ListsEveryPairOnceInSinglePrecision) {
    check<float>(1, true);
}
TEST(PairSearch, ListsPairsWithGhostsFromBothRanksWithoutGhostNewton) {
    check<double>(1, false);
}
TEST(PairSearch, ListsEveryPairFromBothSidesInAFullList) {
    check<double>(0, true);
    check<float>(0, true);
}

TEST(PairSearch, SortsAtomsOfAColumnByHeight) {
    const AtomList atoms = jittered({20.0, 20.0, 20.0}, 1.0, 0.5);
    std::vector<double> x, y, z;
    for (const Vec3& at : atoms.x) {
        x.push_back(at[0]);
        y.push_back(at[1]);
        z.push_back(at[2]);
    }
    Columns<double> columns;
    columns.set_up({0.0, 0.0}, {20.0, 20.0}, 2.1);
    std::vector<std::int32_t> order;
    const Layout layout{8};
    const std::int32_t end = columns.sort(layout, 16, x, y, z, order);
    ASSERT_EQ(order.size(), static_cast<std::size_t>(end - 16));
    EXPECT_EQ(end % layout.granule(), 0);
    std::vector<int> seen(atoms.size());
    for (int column = 0; column < columns.count(0) * columns.count(1); ++column) {
        double below = -1.0;
        bool filler = false;
        for (std::int32_t slot = columns.first_slot(column); slot < columns.first_slot(column + 1); ++slot) {
            const std::int32_t atom = order[static_cast<std::size_t>(slot - 16)];
            if (atom < 0) {
                filler = true;
                continue;
            }
            const auto a = static_cast<std::size_t>(atom);
            EXPECT_FALSE(filler) << "an atom after a filler";
            EXPECT_LE(below, z[a]);
            EXPECT_EQ(columns.column(columns.index(0, x[a]), columns.index(1, y[a])), column);
            below = z[a];
            ++seen[a];
        }
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<std::ptrdiff_t>(seen.size()));
}

}  // namespace
}  // namespace minimd
