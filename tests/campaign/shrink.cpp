#include "shrink.h"

namespace offpath::campaign {

// First large groups of steps, then smaller ones, down to single steps, until none can be left out.
Scenario shrink(Scenario scenario, const std::function<bool(const Scenario&)>& fails) {
    for (std::size_t group = (scenario.steps.size() + 1) / 2; group > 0;) {
        bool smaller = false;
        for (std::size_t at = 0; at < scenario.steps.size();) {
            Scenario tried = scenario;
            const auto first = tried.steps.begin() + static_cast<std::ptrdiff_t>(at);
            tried.steps.erase(first,
                              first + static_cast<std::ptrdiff_t>(std::min(group, tried.steps.size() - at)));
            if (fails(tried)) {
                scenario = std::move(tried);
                smaller = true;
            } else {
                at += group;
            }
        }
        if (!smaller || group > 1) group /= 2;
    }
    return scenario;
}

}  // namespace offpath::campaign
