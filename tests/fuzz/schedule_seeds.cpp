// Writes the first inputs of fuzz-schedule into a folder: bodies of valid schedules, and one whole schedule.
#include "samples.h"
#include "schedule/wire.h"

#include <cstdio>
#include <fstream>
#include <string>

namespace {

bool write(const std::string& path, std::span<const std::byte> bytes) {
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (file.flush()) return true;
    std::fprintf(stderr, "fuzz-schedule-seeds: cannot write %s\n", path.c_str());
    return false;
}

}  // namespace

int main(int argc, char** argv) {
    using namespace offpath;
    if (argc != 2) {
        std::fprintf(stderr, "usage: fuzz-schedule-seeds FOLDER (which exists)\n");
        return 2;
    }
    constexpr std::size_t header_bytes = 10;
    const std::string folder = argv[1];
    const auto sample = schedule::encode(testing::sample_of_everything());
    bool ok = write(folder + "/whole", sample) &&
              write(folder + "/everything", std::span(sample).subspan(header_bytes));
    for (std::uint64_t seed = 0; ok && seed < 50; ++seed) {
        const auto encoded = schedule::encode(testing::random_schedule(seed));
        ok = write(folder + "/random-" + std::to_string(seed), std::span(encoded).subspan(header_bytes));
    }
    return ok ? 0 : 1;
}
