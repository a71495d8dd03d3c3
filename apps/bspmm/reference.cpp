#include "bspmm/reference.h"

#include <cstring>
#include <vector>

#include "bspmm/kernel.h"

namespace bspmm {

std::int64_t wrong_tiles(const Problem& problem, int holder, const double* c_tiles) {
    const std::size_t doubles = problem.shape().tile_doubles();
    std::vector<double> a(doubles), b(doubles), sum(doubles);
    std::int64_t wrong = 0;
    for (int c = 0; c < problem.tiles(Matrix::c); ++c) {
        const Place place = problem.place(Matrix::c, c);
        if (place.holder != holder) continue;
        bool add = false;
        for (const Product& product : problem.products(c)) {
            problem.generate(Matrix::a, product.a, a.data());
            problem.generate(Matrix::b, product.b, b.data());
            multiply(problem.shape().tile, a.data(), b.data(), add, sum.data());
            add = true;
        }
        if (std::memcmp(sum.data(), c_tiles + place.index * doubles, problem.shape().tile_bytes()) != 0)
            ++wrong;
    }
    return wrong;
}

}  // namespace bspmm
