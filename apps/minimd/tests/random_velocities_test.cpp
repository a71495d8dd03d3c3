#include "minimd/setup/random_velocities.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace minimd {
namespace {

// Draws one number after the other.
std::uint64_t advanced(std::uint64_t state, int draws) {
    for (int i = 0; i < draws; ++i)
        state = state * 16807 % park_miller_modulus;
    return state;
}

TEST(RandomVelocities, AreParkAndMillersSequence) {
    // The sequence of seed 1 begins with 16807, 282475249, 1622650073, 984943658, 1144108930, 470211272.
    EXPECT_EQ(draws_of_site(1)[0], 470211272u);
    // The authors' check: the 10000th number of the sequence.
    EXPECT_EQ(advanced(1, 10000), 1043618065u);
    for (const std::int64_t site : {1, 2, 77, 1000000, 2147483646}) {
        const Draws draws = draws_of_site(site);
        for (int d = 0; d < 3; ++d)
            EXPECT_EQ(draws[static_cast<std::size_t>(d)],
                      advanced(static_cast<std::uint64_t>(site), 6 * (d + 1)));
    }
}

TEST(RandomVelocities, OfSitesBeyondTheModulusAreNeverStuckAtZero) {
    for (std::int64_t site = 2147483647; site < 2147483657; ++site) {
        EXPECT_NE(draws_of_site(site)[0], 0u);
        EXPECT_EQ(draws_of_site(site), draws_of_site(site - 2147483646));
    }
}

TEST(RandomVelocities, SumsAreThoseOfTheNumbers) {
    constexpr int atoms = 5000;
    DrawSums sums;
    std::array<long double, 3> mean{};
    for (int site = 1; site <= atoms; ++site) {
        const Draws draws = draws_of_site(site * 7919LL);
        sums.add(draws);
        for (std::size_t d = 0; d < 3; ++d)
            mean[d] += draws[d] / 2147483647.0L / atoms;
    }
    long double squares = 0;
    for (int site = 1; site <= atoms; ++site)
        for (std::size_t d = 0; d < 3; ++d)
            squares += std::pow(draws_of_site(site * 7919LL)[d] / 2147483647.0L - mean[d], 2.0L);
    for (std::size_t d = 0; d < 3; ++d)
        EXPECT_NEAR(sums.mean(atoms)[d], static_cast<double>(mean[d]), 1e-15);
    EXPECT_NEAR(sums.squares_about_mean(atoms) / static_cast<double>(squares), 1.0, 1e-15);
}

}  // namespace
}  // namespace minimd
