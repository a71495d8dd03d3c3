#include "scenario.h"

#include <fmt/format.h>

#include <array>
#include <random>

namespace offpath::campaign {

const char* to_string(Step::Kind kind) {
    static constexpr std::array names{
        "collective",
        "messages",
        "messages from anybody",
        "keyed message",
        "put",
        "get",
        "update",
        "locked increment",
        "flush",
        "pause",
        "rank ends",
        "proxy dies",
        "short stop",
        "long stop",
        "link breaks",
        "no access",
        "rubbish",
    };
    return names[static_cast<std::size_t>(kind)];
}

std::string Scenario::text() const {
    return fmt::format(
        "seed {}: {} ranks, {} proxies, {} memory, {} messages, late {:.2f}, late ends {:.2f}, failing sends "
        "{:.3f}, eager {} B, chunks {} B{}",
        seed, ranks, proxies, memory::to_string(memory), shuffled ? "shuffled" : "ordered", delay_message,
        delay_completion, fail_send, eager_bytes, chunk_bytes, advance_first ? ", advance first" : "");
}

Scenario draw(std::uint64_t seed) {
    std::mt19937_64 random(seed * 0x9E3779B97F4A7C15ull + 1);
    const auto chance = [&](unsigned percent) { return random() % 100 < percent; };
    Scenario made;
    made.seed = seed;
    made.ranks = 2 + static_cast<std::uint32_t>(random() % 4);
    made.proxies = 1 + static_cast<std::uint32_t>(random() % made.ranks);
    static constexpr std::array memories{memory::BackEnd::map, memory::BackEnd::cma, memory::BackEnd::staged};
    made.memory = memories[random() % memories.size()];
    made.shuffled = chance(60);
    if (chance(60)) made.delay_message = 0.05 * static_cast<double>(1 + random() % 10);
    if (chance(60)) made.delay_completion = 0.05 * static_cast<double>(1 + random() % 10);
    if (chance(5)) made.fail_send = 0.01;
    static constexpr std::array<std::size_t, 4> eager{0, 256, 4 << 10, 8 << 10};
    made.eager_bytes = eager[random() % eager.size()];
    made.chunk_bytes = std::size_t{4096} << random() % 3;
    made.advance_first = chance(50);

    const std::size_t count = 3 + random() % 22;
    // A third of the scenarios has no fault, so every error in them is one of ours.
    const unsigned faults = chance(35) ? 0 : 5 + static_cast<unsigned>(random() % 20);
    for (std::size_t i = 0; i < count; ++i) {
        Step step;
        const unsigned first = static_cast<unsigned>(Step::Kind::close_rank);
        const unsigned kinds = static_cast<unsigned>(Step::Kind::rubbish) + 1;
        const unsigned kind = chance(faults) ? first + static_cast<unsigned>(random() % (kinds - first))
                                             : static_cast<unsigned>(random() % first);
        step.kind = static_cast<Step::Kind>(kind);
        step.seed = random();
        made.steps.push_back(step);
    }
    return made;
}

}  // namespace offpath::campaign
