// Writes the first inputs of fuzz-schedule into a folder: bodies of valid schedules, and one whole schedule.
#include "samples.h"
#include "schedule/wire.h"
#include "seed_folder.h"

int main(int argc, char** argv) {
    using namespace offpath;
    fuzz::SeedFolder folder(argc, argv);
    constexpr std::size_t header_bytes = 10;
    const auto sample = schedule::encode(testing::sample_of_everything());
    folder.write("whole", sample);
    folder.write("everything", std::span(sample).subspan(header_bytes));
    for (std::uint64_t seed = 0; folder.good() && seed < 50; ++seed) {
        const auto encoded = schedule::encode(testing::random_schedule(seed));
        folder.write("random-" + std::to_string(seed), std::span(encoded).subspan(header_bytes));
    }
    return folder.exit_code();
}
