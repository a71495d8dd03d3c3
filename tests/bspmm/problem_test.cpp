// The work table and the layout of tiles, compared with a plain search over rows and columns.
#include "bspmm/problem.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "bspmm/kernel.h"
#include "bspmm/reference.h"

namespace bspmm {
namespace {

Shape shape(int mesh, int tile, int holders, std::optional<double> sparsity = {}, std::uint64_t seed = 1) {
    Shape made;
    made.mesh = mesh;
    made.tile = tile;
    made.holders = holders;
    made.sparsity = sparsity;
    made.seed = seed;
    return made;
}

TEST(Problem, HasTheDenseBlocksOfTheMiniApp) {
    const Problem problem(shape(16, 1, 4));
    EXPECT_EQ(problem.tiles(Matrix::a), 8 * 8 + 2 * 4 * 4);
    EXPECT_EQ(problem.tiles(Matrix::b), problem.tiles(Matrix::a));
    EXPECT_EQ(problem.tiles(Matrix::c), problem.tiles(Matrix::a));
    EXPECT_EQ(problem.units().size(), 8u * 8 * 8 + 2 * 4 * 4 * 4);
}

TEST(Problem, SaysBeforehandWhatItTakes) {
    const Problem problem(shape(16, 10, 4));
    const int tiles = problem.tiles(Matrix::a) + problem.tiles(Matrix::b) + problem.tiles(Matrix::c);
    EXPECT_EQ(Problem::tiles_bytes(shape(16, 10, 4)), tiles * 800.0);
    EXPECT_EQ(Problem::table_bytes(shape(16, 10, 4)),
              static_cast<double>(problem.units().size() * sizeof(WorkUnit)));
    EXPECT_GT(Problem::tiles_bytes(shape(1024, 8192, 1)), 1e14);  // no overflow
    EXPECT_EQ(Problem::tiles_bytes(shape(10, 10, 1, 0.5)), 2 * 50 * 800.0);
}

TEST(Problem, ListsEveryProductOnceAndThoseOfATileTogether) {
    for (const auto& [mesh, sparsity] :
         {std::pair<int, std::optional<double>>{7, 0.6}, {12, {}}, {5, 0.0}, {6, 1.0}}) {
        const Problem problem(shape(mesh, 1, 3, sparsity));
        std::set<std::tuple<int, int, int>> seen;
        std::set<int> closed;
        int current = -1;
        for (const WorkUnit& unit : problem.units()) {
            EXPECT_TRUE(seen.insert({unit.a, unit.b, unit.c}).second);
            if (unit.c != current) {
                EXPECT_TRUE(closed.insert(unit.c).second) << "tile " << unit.c << " comes back";
                current = unit.c;
            }
        }
        EXPECT_EQ(static_cast<int>(closed.size()), problem.tiles(Matrix::c))
            << "every tile of C has a product";
        std::size_t products = 0;
        for (int c = 0; c < problem.tiles(Matrix::c); ++c)
            products += problem.products(c).size();
        EXPECT_EQ(products, problem.units().size());
    }
}

TEST(Problem, RandomSparsityIsWhatWasAskedForAndFollowsFromTheSeed) {
    const Problem problem(shape(64, 1, 1, 0.8, 3)), same(shape(64, 1, 4, 0.8, 3)),
        other(shape(64, 1, 1, 0.8, 4));
    EXPECT_NEAR(problem.tiles(Matrix::a), 0.2 * 64 * 64, 80);
    EXPECT_NEAR(problem.tiles(Matrix::b), 0.2 * 64 * 64, 80);
    ASSERT_EQ(same.units().size(), problem.units().size()) << "the number of ranks changes nothing";
    for (std::size_t i = 0; i < problem.units().size(); ++i)
        ASSERT_EQ(std::tie(problem.units()[i].a, problem.units()[i].c),
                  std::tie(same.units()[i].a, same.units()[i].c));
    EXPECT_NE(other.units().size(), problem.units().size());
}

TEST(Problem, DealsTilesEvenlyAndNoTwoToOnePlace) {
    for (const int holders : {1, 2, 3, 4, 7}) {
        const Problem problem(shape(16, 1, holders));
        for (const Matrix matrix : {Matrix::a, Matrix::b, Matrix::c}) {
            std::map<std::pair<int, std::size_t>, int> tile_at;
            std::map<int, int> held;
            for (int tile = 0; tile < problem.tiles(matrix); ++tile) {
                const Place place = problem.place(matrix, tile);
                ASSERT_LT(place.index, problem.room(matrix));
                ASSERT_TRUE(tile_at.insert({{place.holder, place.index}, tile}).second);
                ++held[place.holder];
            }
            ASSERT_EQ(static_cast<int>(held.size()), holders);
            for (const auto& [holder, count] : held)
                EXPECT_NEAR(count, static_cast<double>(problem.tiles(matrix)) / holders,
                            0.1 * problem.tiles(matrix));
        }
    }
}

TEST(Problem, NeitherRowsNorColumnsComeFromOneHolder) {
    const Problem problem(shape(16, 1, 4));
    // The products of one tile of C take a row of A and a column of B.
    for (int c = 0; c < 64; ++c) {
        std::set<int> a, b;
        for (const Product& product : problem.products(c)) {
            a.insert(problem.place(Matrix::a, product.a).holder);
            b.insert(problem.place(Matrix::b, product.b).holder);
        }
        EXPECT_EQ(a.size(), 4u);
        EXPECT_EQ(b.size(), 4u);
    }
}

TEST(Problem, ValuesAreSmallWholeNumbersThatFollowFromThePosition) {
    const Problem problem(shape(8, 37, 2, {}, 9));
    std::vector<double> tile(37 * 37), again(37 * 37), next(37 * 37), of_b(37 * 37);
    problem.generate(Matrix::a, 5, tile.data());
    problem.generate(Matrix::a, 5, again.data());
    problem.generate(Matrix::a, 6, next.data());
    problem.generate(Matrix::b, 5, of_b.data());
    EXPECT_EQ(tile, again);
    EXPECT_NE(tile, next);
    EXPECT_NE(tile, of_b);
    std::set<double> values(tile.begin(), tile.end());
    EXPECT_EQ(values.size(), 17u);
    EXPECT_EQ(*values.begin(), -8);
    EXPECT_EQ(*values.rbegin(), 8);
}

TEST(Multiply, IsTheProductOfTilesRowByRow) {
    constexpr int n = 5;
    std::vector<double> a(n * n), b(n * n), c(n * n, 1.0), expected(n * n, 1.0);
    for (int i = 0; i < n * n; ++i) {
        a[static_cast<std::size_t>(i)] = i % 7 - 3;
        b[static_cast<std::size_t>(i)] = i % 5 - 2;
    }
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j)
            for (int k = 0; k < n; ++k)
                expected[static_cast<std::size_t>(i * n + j)] +=
                    a[static_cast<std::size_t>(i * n + k)] * b[static_cast<std::size_t>(k * n + j)];
    multiply(n, a.data(), b.data(), true, c.data());
    EXPECT_EQ(c, expected);
}

}  // namespace
}  // namespace bspmm
