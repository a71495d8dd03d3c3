#include "minimd/setup/random_velocities.h"

namespace minimd {

namespace {

constexpr std::uint64_t multiplier = 16807;

constexpr std::uint64_t power(std::uint64_t base, int exponent) {
    std::uint64_t result = 1;
    for (int i = 0; i < exponent; ++i)
        result = result * base % park_miller_modulus;
    return result;
}

// Advances the generator by six draws at once.
constexpr std::uint64_t stride = power(multiplier, 6);

constexpr int limbs = 4;
constexpr int limb_bits = 32;

}  // namespace

Draws draws_of_site(std::int64_t site) {
    std::uint64_t state = (static_cast<std::uint64_t>(site) - 1) % (park_miller_modulus - 1) + 1;
    Draws draws{};
    for (std::uint32_t& draw : draws) {
        state = state * stride % park_miller_modulus;
        draw = static_cast<std::uint32_t>(state);
    }
    return draws;
}

void DrawSums::add(const Draws& draws) {
    for (std::size_t d = 0; d < 3; ++d) {
        sum_[d] += draws[d];
        squares_ += std::uint64_t{draws[d]} * draws[d];
    }
}

void DrawSums::reduce(MPI_Comm comm) {
    std::array<std::uint64_t, 4 * limbs> parts{};
    const auto number = [this](int i) -> Wide& {
        return i < 3 ? sum_[static_cast<std::size_t>(i)] : squares_;
    };
    for (int i = 0; i < 4; ++i)
        for (int limb = 0; limb < limbs; ++limb)
            parts[static_cast<std::size_t>(i * limbs + limb)] =
                static_cast<std::uint32_t>(number(i) >> (limb * limb_bits));
    MPI_Allreduce(MPI_IN_PLACE, parts.data(), static_cast<int>(parts.size()), MPI_UINT64_T, MPI_SUM, comm);
    for (int i = 0; i < 4; ++i) {
        number(i) = 0;
        for (int limb = 0; limb < limbs; ++limb)
            number(i) += static_cast<Wide>(parts[static_cast<std::size_t>(i * limbs + limb)])
                         << (limb * limb_bits);
    }
}

Vec3 DrawSums::mean(std::int64_t atoms) const {
    Vec3 mean{};
    for (std::size_t d = 0; d < 3; ++d)
        mean[d] = static_cast<double>(static_cast<long double>(sum_[d]) / static_cast<long double>(atoms) /
                                      static_cast<long double>(park_miller_modulus));
    return mean;
}

double DrawSums::squares_about_mean(std::int64_t atoms) const {
    constexpr auto unit = static_cast<long double>(park_miller_modulus);
    long double result = static_cast<long double>(squares_);
    for (const Wide sum : sum_)
        result -=
            static_cast<long double>(sum) * static_cast<long double>(sum) / static_cast<long double>(atoms);
    return static_cast<double>(result / unit / unit);
}

}  // namespace minimd
