#include "sim/profile/reactions.h"

#include <algorithm>

namespace offpath::sim {

void Reactions::waited(std::uint64_t place, std::uint64_t tests) {
    Place& its = places_[place];
    its.most_tests = std::max(its.most_tests, tests);
    its.goes_on |= tests > 0;
}

void Reactions::found(std::uint64_t place, std::uint64_t tests, std::size_t calls) {
    Place& its = places_[place];
    its.most_tests = std::max(its.most_tests, tests);
    ++its.found[{tests, calls}];
}

bool Reactions::goes_on(std::uint64_t place) const {
    const auto its = places_.find(place);
    return place != 0 && its != places_.end() && its->second.goes_on;
}

std::size_t Reactions::calls_after(std::uint64_t place) const {
    const auto its = places_.find(place);
    if (place == 0 || its == places_.end()) return 0;
    std::uint64_t with = 0, without = 0;
    std::size_t least = SIZE_MAX;
    for (const auto& [what, times] : its->second.found) {
        const auto [tests, calls] = what;
        if (tests >= its->second.most_tests) continue;  // after the last test, other calls follow as well
        (calls > 0 ? with : without) += times;
        if (calls > 0) least = std::min(least, calls);
    }
    // The last rank of a chain, for example, has nothing to pass on.
    return with > 0 && with >= without ? least : 0;
}

}  // namespace offpath::sim
