// The kernel with an exchange that does everything as late as allowed: data arrive in the buffers when an
// operation is finished and not before, and sums are read only then. A kernel that touches a buffer too
// early, forgets a unit or adds one twice gives a wrong C.
#include "bspmm/kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <ostream>

#include "bspmm/reference.h"

namespace bspmm {
namespace {

class LateExchange : public Exchange {
  public:
    explicit LateExchange(int holders, int rank) : holders_(holders), rank_(rank) {}

    int rank() const override { return rank_; }
    int ranks() const override { return holders_; }
    int holders() const override { return holders_; }

    void allocate(const Problem& problem, int buffers, int slots) override {
        slots_ = slots;
        problem_ = &problem;
        const std::size_t doubles = problem.shape().tile_doubles();
        buffers_.assign(static_cast<std::size_t>(buffers),
                        std::vector<double>(doubles, std::numeric_limits<double>::quiet_NaN()));
        for (const Matrix matrix : {Matrix::a, Matrix::b, Matrix::c}) {
            auto& held = tiles_[static_cast<std::size_t>(matrix)];
            held.assign(static_cast<std::size_t>(holders_),
                        std::vector<double>(problem.room(matrix) * doubles, 0.0));
            if (matrix == Matrix::c) continue;
            for (int tile = 0; tile < problem.tiles(matrix); ++tile)
                problem.generate(matrix, tile, address(matrix, problem.place(matrix, tile)));
        }
    }
    double* tiles(Matrix matrix) override {
        return tiles_[static_cast<std::size_t>(matrix)][static_cast<std::size_t>(rank_)].data();
    }
    double* buffer(int index) override { return buffers_[static_cast<std::size_t>(index)].data(); }

    void start_claim() override {
        ++claiming_;
        EXPECT_LE(claiming_, slots_);
    }
    std::int64_t finish_claim() override {
        EXPECT_GT(claiming_, 0);
        --claiming_;
        return next_++;
    }
    void start_get(int slot, double* into, Matrix matrix, Place place) override {
        EXPECT_NE(place.holder, rank_);
        std::fill_n(into, problem_->shape().tile_doubles(), std::numeric_limits<double>::quiet_NaN());
        gets_.push_back({slot, into, matrix, place});
        deepest_ = std::max(deepest_, gets_.size());
    }
    void finish_gets(int slot) override {
        for (const Get& get : gets_)
            if (get.slot == slot)
                std::copy_n(address(get.matrix, get.place), problem_->shape().tile_doubles(), get.into);
        std::erase_if(gets_, [slot](const Get& get) { return get.slot == slot; });
    }
    void start_accumulate(const double* from, Place place) override {
        for (const Sum& sum : sums_)
            EXPECT_NE(sum.from, from);
        sums_.push_back({from, place});
    }
    void finish_accumulate(const double* from) override {
        for (const Sum& sum : sums_)
            if (sum.from == from) add(sum);
        std::erase_if(sums_, [from](const Sum& sum) { return sum.from == from; });
    }
    void complete() override {
        EXPECT_TRUE(gets_.empty());
        EXPECT_EQ(claiming_, 0);
        for (const Sum& sum : sums_)
            add(sum);
        sums_.clear();
    }
    void restart() override { next_ = 0; }
    void barrier() override {}
    std::vector<double> gather(const std::vector<double>& values) override { return values; }
    void abort(int) override { FAIL(); }

    const double* c_of(int holder) {
        return tiles_[static_cast<std::size_t>(Matrix::c)][static_cast<std::size_t>(holder)].data();
    }
    void skip(std::int64_t units) { next_ += units; }
    std::size_t deepest() const { return deepest_; }

  private:
    struct Get {
        int slot;
        double* into;
        Matrix matrix;
        Place place;
    };
    struct Sum {
        const double* from;
        Place place;
    };
    double* address(Matrix matrix, Place place) {
        return tiles_[static_cast<std::size_t>(matrix)][static_cast<std::size_t>(place.holder)].data() +
               place.index * problem_->shape().tile_doubles();
    }
    void add(const Sum& sum) {
        double* to = address(Matrix::c, sum.place);
        for (std::size_t i = 0; i < problem_->shape().tile_doubles(); ++i)
            to[i] += sum.from[i];
    }

    const int holders_, rank_;
    const Problem* problem_ = nullptr;
    std::vector<std::vector<double>> tiles_[matrix_count], buffers_;
    std::vector<Get> gets_;
    std::vector<Sum> sums_;
    int claiming_ = 0, slots_ = 0;
    std::int64_t next_ = 0;
    std::size_t deepest_ = 0;
};

struct Case {
    int mesh, holders, lookahead;
    std::optional<double> sparsity;
};

void PrintTo(const Case& c, std::ostream* out) {
    *out << "mesh " << c.mesh << ", holders " << c.holders << ", lookahead " << c.lookahead;
}

class KernelTest : public testing::TestWithParam<Case> {
  protected:
    KernelTest() : problem_(made()), exchange_(GetParam().holders, GetParam().holders - 1) {
        exchange_.allocate(problem_, buffers_for(GetParam().lookahead), slots_for(GetParam().lookahead));
    }
    static Shape made() {
        Shape shape;
        shape.mesh = GetParam().mesh;
        shape.tile = 3;
        shape.holders = GetParam().holders;
        shape.sparsity = GetParam().sparsity;
        return shape;
    }
    std::int64_t wrong() {
        std::int64_t tiles = 0;
        for (int holder = 0; holder < GetParam().holders; ++holder)
            tiles += wrong_tiles(problem_, holder, exchange_.c_of(holder));
        return tiles;
    }

    const Problem problem_;
    LateExchange exchange_;
};

TEST_P(KernelTest, GivesTheSerialResult) {
    const auto units = static_cast<std::int64_t>(problem_.units().size());
    const Phases phases = run_kernel(problem_, exchange_, GetParam().lookahead, units);
    EXPECT_EQ(wrong(), 0);
    EXPECT_EQ(phases.units, static_cast<double>(units));
    EXPECT_EQ(phases.accumulates, problem_.tiles(Matrix::c))
        << "consecutive units of a tile are added together";
    EXPECT_LE(exchange_.deepest(), 2u * static_cast<std::size_t>(slots_for(GetParam().lookahead)));
}

class KernelOfUnits : public KernelTest {};  // of at least two
class KernelOfAUnit : public KernelTest {};  // of at least one

TEST_P(KernelOfUnits, AMissingUnitIsNoticed) {
    const auto units = static_cast<std::int64_t>(problem_.units().size());
    ASSERT_GE(units, 2);
    exchange_.skip(1);
    run_kernel(problem_, exchange_, GetParam().lookahead, units);
    EXPECT_EQ(wrong(), 1);
}

TEST_P(KernelOfAUnit, AUnitDoneTwiceIsNoticed) {
    const auto units = static_cast<std::int64_t>(problem_.units().size());
    ASSERT_GE(units, 1);
    run_kernel(problem_, exchange_, GetParam().lookahead, units);
    exchange_.restart();
    run_kernel(problem_, exchange_, GetParam().lookahead, 1);
    EXPECT_EQ(wrong(), 1);
}

std::string name_of(const testing::TestParamInfo<Case>& case_info) {
    const Case& c = case_info.param;
    return "mesh" + std::to_string(c.mesh) + "_holders" + std::to_string(c.holders) + "_lookahead" +
           std::to_string(c.lookahead) +
           (c.sparsity ? "_sparsity" + std::to_string(static_cast<int>(*c.sparsity * 10)) : "");
}

const auto many_units =
    testing::Values(Case{8, 4, 0, {}}, Case{8, 4, 1, {}}, Case{8, 4, 2, {}}, Case{9, 1, 1, {}},
                    Case{7, 3, 0, 0.6}, Case{7, 3, 1, 0.6}, Case{7, 3, 5, 0.6});
const auto one_unit = testing::Values(Case{1, 1, 0, 0.0}, Case{1, 2, 3, 0.0});
const auto no_unit = testing::Values(Case{4, 2, 1, 1.0});
INSTANTIATE_TEST_SUITE_P(ManyUnits, KernelTest, many_units, name_of);
INSTANTIATE_TEST_SUITE_P(ManyUnits, KernelOfUnits, many_units, name_of);
INSTANTIATE_TEST_SUITE_P(ManyUnits, KernelOfAUnit, many_units, name_of);
INSTANTIATE_TEST_SUITE_P(OneUnit, KernelTest, one_unit, name_of);
INSTANTIATE_TEST_SUITE_P(OneUnit, KernelOfAUnit, one_unit, name_of);
INSTANTIATE_TEST_SUITE_P(NoUnit, KernelTest, no_unit, name_of);

}  // namespace
}  // namespace bspmm
