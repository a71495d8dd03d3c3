// The multiplication C = A B of block-sparse matrices: which tiles there are, who holds them, and the table
// of work units.
//
// A unit is one product of tiles that is not zero, C(i,j) += A(i,k) B(k,j). Units of one tile of C follow
// each other in the table. Tiles are numbered within their matrix, row by row, and dealt to the holders in
// turn, each row of tiles beginning one holder later: neither a row nor a column of tiles comes from one
// holder.
//
// Every rank builds the same problem from the same shape; nothing here communicates. Immutable, so any thread
// may read it.
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
    int mesh = 16;   // tiles in a row and in a column of each matrix
    int tile = 128;  // numbers in a row and in a column of a tile
    // The share of tiles of A and B that are zero, at random. Without it, the pattern of the public mini-app:
    // the first quarter of each matrix is dense, and so are two blocks of half that width along the diagonal.
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

// A tile of C, as the sum of products that it is.
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
    // What the holder with the most tiles of the matrix has; every rank makes room for as many.
    std::size_t room(Matrix matrix) const { return of(matrix).room; }
    // The products of a tile of C.
    std::vector<Product> products(int c_tile) const;

    // The values of a tile of A or B: whole numbers from -8 to 8, which follow from seed, matrix and
    // position. So every sum is exact in whatever order it is formed, and results can be compared bit by bit.
    void generate(Matrix matrix, int tile, double* values) const;

    double flops() const;

    // What a problem takes, before anything is made of it. Of the tiles of all holders; random ones as
    // expected, and of C those only that the block pattern says.
    static double tiles_bytes(const Shape& shape);
    // Of the table of units, of which every rank has one.
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
    std::vector<std::size_t> first_unit_;  // of each tile of C, and one past the last
};

}  // namespace bspmm
