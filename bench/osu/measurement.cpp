#include "measurement.h"

#include <cstdint>
#include <cstring>

namespace osu {

namespace {

unsigned char mark(std::size_t at, int sender) {
    return static_cast<unsigned char>(at * 7 + (at >> 8) * 13 + static_cast<std::size_t>(sender) * 101 + 1);
}

constexpr std::size_t kPage = 4096;

}  // namespace

PageBuffer::PageBuffer(std::size_t bytes) : memory_(bytes + kPage, mpi_support::Allocator::kMalloc) {
    const std::size_t beyond = reinterpret_cast<std::uintptr_t>(memory_.as()) % kPage;
    data_ = memory_.as() + (kPage - beyond) % kPage;
}

void PageBuffer::clear() {
    std::memset(memory_.as(), 0, memory_.bytes());
}

void fill(unsigned char* data, std::size_t bytes, int sender) {
    for (std::size_t i = 0; i < bytes; ++i)
        data[i] = mark(i, sender);
}

bool is_filled(const unsigned char* data, std::size_t bytes, int sender) {
    for (std::size_t i = 0; i < bytes; ++i)
        if (data[i] != mark(i, sender)) return false;
    return true;
}

std::vector<std::string> test_names() {
    return {"latency", "bw", "mbw_mr", "allgather"};
}

std::unique_ptr<Measurement> make_measurement(const std::string& test, const Shape& shape,
                                              const mpi_support::World& world) {
    const bool two_only = test == "latency" || test == "bw";
    if (two_only && world.ranks != 2)
        throw mpi_support::UsageError(test + " is a test of two ranks, and there are " +
                                      std::to_string(world.ranks) + ": run it with mpirun -n 2");
    if (test == "mbw_mr" && world.ranks % 2 != 0)
        throw mpi_support::UsageError("mbw_mr needs an even number of ranks, and there are " +
                                      std::to_string(world.ranks));
    if (test == "latency") return make_latency(shape, world);
    return test == "allgather" ? make_allgather(shape, world) : make_bandwidth(shape, world);
}

}  // namespace osu
