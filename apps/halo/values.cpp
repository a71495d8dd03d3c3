#include "halo/values.h"

#include <algorithm>
#include <bit>

namespace halo {

namespace {

// A bijection that spreads its argument's bits (the finalizer of SplitMix64).
std::uint64_t mix(std::uint64_t value) {
    value += 0x9E3779B97F4A7C15ull;
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
    return value ^ (value >> 31);
}

// Calls visit(place in memory, cell number in the domain, or UINT64_MAX outside of it) for each place, halo
// included.
template <typename Visit>
void for_places(const Domain& domain, const Block& block, const Layout& layout, Visit&& visit) {
    const auto whole = [&](int dim, std::int64_t padded) {
        const std::int64_t extent = domain.extent(dim), at = block.first[dim] + padded - layout.halo[dim];
        if (at >= 0 && at < extent) return at;
        return domain.periodic ? (at + extent) % extent : std::int64_t{-1};
    };
    for (std::int64_t i = 0; i < layout.padded(0); ++i)
        for (std::int64_t j = 0; j < layout.padded(1); ++j)
            for (std::int64_t k = 0; k < layout.padded(2); ++k) {
                const std::int64_t slow = whole(0, i), middle = whole(1, j), fast = whole(2, k);
                const bool outside = slow < 0 || middle < 0 || fast < 0;
                const auto cell =
                    static_cast<std::uint64_t>((slow * domain.extent(1) + middle) * domain.extent(2) + fast);
                visit(i * layout.stride[0] + j * layout.stride[1] + k, outside ? UINT64_MAX : cell,
                      std::array{i, j, k});
            }
}

}  // namespace

void set_first_values(const Domain& domain, const Block& block, const Layout& layout, double* first,
                      double* second) {
    std::fill_n(second, layout.numbers(), 0.0);
    for_places(domain, block, layout, [&](std::int64_t place, std::uint64_t cell, const auto&) {
        first[place] = cell == UINT64_MAX ? 0.0 : static_cast<double>(mix(cell) >> 11) * 0x1p-53;
    });
}

std::uint64_t checksum(const Domain& domain, const Block& block, const Layout& layout, const double* field) {
    std::uint64_t sum = 0;
    for_places(domain, block, layout, [&](std::int64_t place, std::uint64_t cell, const auto& at) {
        for (int dim = 0; dim < 3; ++dim)
            if (at[dim] < layout.halo[dim] || at[dim] >= layout.halo[dim] + layout.n[dim]) return;
        sum += mix(std::bit_cast<std::uint64_t>(field[place]) ^ mix(cell));
    });
    return sum;
}

}  // namespace halo
