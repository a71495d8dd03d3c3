// The multiplication C = A B of block-sparse matrices: which tiles exist, which rank holds each, and the
// table of work units.
//
// A unit is one non-zero product of tiles, C(i,j) += A(i,k) B(k,j). The units of a tile of C are consecutive
// in the table. Tiles are numbered within their matrix, row by row, and distributed to the holders in turn.
// Each row of tiles begins one holder later, so that neither a row nor a column of tiles comes from one
// holder.
//
// Every rank builds the same problem from the same shape, without communication. Immutable, so any thread may
// read it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace bspmm {

enum class Matrix : std::uint8_t { a, b, c };
inline constexpr int matrix_count = 3;

struct Shape {
    int mesh = 16;   // tiles per row and column of each matrix
    int tile = 128;  // numbers per row and column of a tile
    // The share of tiles of A and B that are zero, chosen at random. If it is not set, the pattern of the
    // public mini-app: the first quarter of each matrix is dense, and so are two blocks of half that width
    // along the diagonal.
    std::optional<double> sparsity;
    std::uint64_t seed = 1;
    int holders = 1;  // ranks that hold tiles

    std::size_t tile_doubles() const {
        return static_cast<std::size_t>(tile) * static_cast<std::size_t>(tile);
    }
    std::size_t tile_bytes() const { return tile_doubles() * sizeof(double); }
};

// Tile numbers.
struct WorkUnit {
    int a = 0, b = 0, c = 0;
};

struct Place {
    int holder = 0;
    std::size_t index = 0;  // among the holder's tiles of that matrix
};

// A tile of C as a sum of products.
struct Product {
    int a = 0, b = 0;
};

class Problem {
  public:
    explicit Problem(const Shape& shape);

    const Shape& shape() const { return shape_; }
    const std::vector<WorkUnit>& units() const { return units_; }
    int tiles(Matrix matrix) const { return static_cast<int>(of(matrix).places.size()); }
    Place place(Matrix matrix, int tile) const { return of(matrix).places[static_cast<std::size_t>(tile)]; }
    // The largest number of tiles of the matrix that a holder has. Every rank makes room for that many.
    std::size_t room(Matrix matrix) const { return of(matrix).room; }
    // The products of a tile of C.
    std::vector<Product> products(int c_tile) const;

    // The values of a tile of A or B: whole numbers from -8 to 8, determined by seed, matrix and position.
    // Every sum is therefore exact in any order, and results can be compared bit by bit.
    void generate(Matrix matrix, int tile, double* values) const;

    double flops() const;

    // The bytes that the tiles of all holders need, computed without making the problem. For random tiles it
    // is the expected value, and for C only the tiles of the block pattern.
    static double tiles_bytes(const Shape& shape);
    // The bytes of the table of units; every rank has one.
    static double table_bytes(const Shape& shape);

  private:
    struct Layout {
        std::vector<int> tile_at;  // by row and column; -1: zero
        std::vector<Place> places;
        std::size_t room = 0;
    };
    const Layout& of(Matrix matrix) const { return layouts_[static_cast<std::size_t>(matrix)]; }
    Layout& of(Matrix matrix) { return layouts_[static_cast<std::size_t>(matrix)]; }
    int tile_at(Matrix matrix, int row, int column) const;
    bool is_dense(Matrix matrix, int row, int column) const;
    template <typename Predicate>
    void lay_out(Matrix matrix, Predicate present);
    void list_units();

    Shape shape_;
    std::array<Layout, matrix_count> layouts_;
    std::vector<WorkUnit> units_;
    std::vector<std::size_t> first_unit_;  // by tile of C, and one past the last
};

}  // namespace bspmm
