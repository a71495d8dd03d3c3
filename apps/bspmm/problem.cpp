#include "bspmm/problem.h"

#include <algorithm>

namespace bspmm {

namespace {

// SplitMix64's output function: every bit of the result depends on every bit of the argument.
std::uint64_t mix(std::uint64_t value) {
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

constexpr int largest_value = 8;

}  // namespace

Problem::Problem(const Shape& shape) : shape_(shape) {
    lay_out(Matrix::a, [this](int row, int column) { return is_dense(Matrix::a, row, column); });
    lay_out(Matrix::b, [this](int row, int column) { return is_dense(Matrix::b, row, column); });
    lay_out(Matrix::c, [this](int row, int column) {
        for (int k = 0; k < shape_.mesh; ++k)
            if (tile_at(Matrix::a, row, k) >= 0 && tile_at(Matrix::b, k, column) >= 0) return true;
        return false;
    });
    list_units();
}

int Problem::tile_at(Matrix matrix, int row, int column) const {
    return of(matrix).tile_at[static_cast<std::size_t>(row * shape_.mesh + column)];
}

bool Problem::is_dense(Matrix matrix, int row, int column) const {
    if (shape_.sparsity) {
        const auto position = static_cast<std::uint64_t>(row) << 32 | static_cast<std::uint32_t>(column);
        const std::uint64_t drawn = mix(mix(shape_.seed + static_cast<std::uint64_t>(matrix)) ^ position);
        return static_cast<double>(drawn >> 11) * 0x1.0p-53 >= *shape_.sparsity;
    }
    // The block of a row or column: the blocks of a dimension are one half and two quarters of the mesh.
    const auto block = [this](int at) { return at < shape_.mesh / 2 ? 0 : at < 3 * shape_.mesh / 4 ? 1 : 2; };
    return block(row) == block(column);
}

template <typename Predicate>
void Problem::lay_out(Matrix matrix, Predicate present) {
    Layout& layout = of(matrix);
    layout.tile_at.assign(static_cast<std::size_t>(shape_.mesh) * static_cast<std::size_t>(shape_.mesh), -1);
    std::vector<std::size_t> held(static_cast<std::size_t>(shape_.holders), 0);
    for (int row = 0; row < shape_.mesh; ++row) {
        for (int column = 0; column < shape_.mesh; ++column) {
            if (!present(row, column)) continue;
            const int tile = static_cast<int>(layout.places.size());
            const int holder = (tile + row) % shape_.holders;
            layout.tile_at[static_cast<std::size_t>(row * shape_.mesh + column)] = tile;
            layout.places.push_back({holder, held[static_cast<std::size_t>(holder)]++});
        }
    }
    layout.room = *std::max_element(held.begin(), held.end());
}

void Problem::list_units() {
    for (int row = 0; row < shape_.mesh; ++row) {
        for (int column = 0; column < shape_.mesh; ++column) {
            const int c = tile_at(Matrix::c, row, column);
            if (c < 0) continue;
            first_unit_.push_back(units_.size());
            for (int k = 0; k < shape_.mesh; ++k) {
                const int a = tile_at(Matrix::a, row, k), b = tile_at(Matrix::b, k, column);
                if (a >= 0 && b >= 0) units_.push_back({a, b, c});
            }
        }
    }
    first_unit_.push_back(units_.size());
}

std::vector<Product> Problem::products(int c_tile) const {
    const auto c = static_cast<std::size_t>(c_tile);
    std::vector<Product> found;
    for (std::size_t unit = first_unit_[c]; unit < first_unit_[c + 1]; ++unit)
        found.push_back({units_[unit].a, units_[unit].b});
    return found;
}

void Problem::generate(Matrix matrix, int tile, double* values) const {
    constexpr std::uint64_t kinds = 2 * largest_value + 1;
    const std::uint64_t start =
        mix(mix(shape_.seed + static_cast<std::uint64_t>(matrix)) + static_cast<std::uint64_t>(tile));
    const std::size_t count = shape_.tile_doubles();
    // Each random number gives eight values: one byte for each, scaled to the range.
    std::uint64_t drawn = 0;
    for (std::size_t i = 0; i < count; ++i) {
        drawn = i % 8 == 0 ? mix(start + i) : drawn >> 8;
        values[i] = static_cast<double>((drawn & 0xff) * kinds >> 8) - largest_value;
    }
}

double Problem::tiles_bytes(const Shape& shape) {
    const double mesh = shape.mesh;
    const double share = shape.sparsity ? 2 * (1 - *shape.sparsity) : 3 * 3.0 / 8;
    return share * mesh * mesh * static_cast<double>(shape.tile_bytes());
}

double Problem::table_bytes(const Shape& shape) {
    const double mesh = shape.mesh;
    const double share = shape.sparsity ? (1 - *shape.sparsity) * (1 - *shape.sparsity) : 1.0 / 8 + 1.0 / 32;
    return share * mesh * mesh * mesh * static_cast<double>(sizeof(WorkUnit));
}

double Problem::flops() const {
    const double tile = shape_.tile;
    return 2.0 * tile * tile * tile * static_cast<double>(units_.size());
}

}  // namespace bspmm
