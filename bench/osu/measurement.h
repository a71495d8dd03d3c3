// The four measurements of the OSU micro-benchmarks that papers on devices report, by their published
// definitions:
// - latency: two ranks, blocking ping-pong; half the mean time of a round trip, in us.
// - bw: two ranks; rank 0 sends a window of messages, and rank 1 answers when all have arrived. MB/s (10^6
//   bytes).
// - mbw_mr: 2 p ranks; ranks i and i + p do the same as in bw, all pairs at once. All bytes over the mean of
//   the pairs' times, in MB/s.
// - allgather: all ranks, each with `bytes` bytes; the mean time in the call over iterations and ranks, in
//   us. A barrier separates the calls.
// As in the original, the messages of a window are sent from one buffer and received into one buffer.
//
// All calls are collective over MPI_COMM_WORLD and return the same value on all ranks. One thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "support/buffer.h"
#include "support/mpi_program.h"

namespace osu {

class Measurement {
  public:
    virtual ~Measurement() = default;
    virtual const char* unit() const = 0;
    // The seconds that `iterations` of the operation took, by the test's definition.
    virtual double timed(std::size_t bytes, long iterations) = 0;
    virtual double value(std::size_t bytes, long iterations, double seconds) const = 0;
    // One iteration whose data are checked. False on the ranks that received wrong data.
    virtual bool verified(std::size_t bytes) = 0;
};

struct Shape {
    int window = 64;
    std::size_t largest = 0;  // bytes of the largest message
};

std::vector<std::string> test_names();
// Throws mpi_support::UsageError if the number of ranks does not suit the test.
std::unique_ptr<Measurement> make_measurement(const std::string& test, const Shape& shape,
                                              const mpi_support::World& world);

std::unique_ptr<Measurement> make_latency(const Shape& shape, const mpi_support::World& world);
std::unique_ptr<Measurement> make_bandwidth(const Shape& shape, const mpi_support::World& world);
std::unique_ptr<Measurement> make_allgather(const Shape& shape, const mpi_support::World& world);

// Memory that begins on a page, as in the original, because transports copy it faster.
class PageBuffer {
  public:
    explicit PageBuffer(std::size_t bytes);
    unsigned char* data() const { return data_; }
    void clear();

  private:
    mpi_support::Buffer memory_;
    unsigned char* data_;
};

// The data depend on the sender and the position, so that a wrong or shifted message is detected.
void fill(unsigned char* data, std::size_t bytes, int sender);
bool is_filled(const unsigned char* data, std::size_t bytes, int sender);

}  // namespace osu
