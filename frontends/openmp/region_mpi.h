// MPI in the target regions of this process. It finds out which MPI the process has, has the device load its
// library for it before images that call MPI, and has the device join those of all ranks in MPI_Init,
// when the front end calls (mpi/runtime/regions.h).
//
// Ownership: borrows the target. Threads: load() any; the rest in MPI_Init and MPI_Finalize.
#pragma once

#include "openmp/mpi/attach_record.h"
#include "target/program/target.h"

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace offpath::openmp {

// Whether a device image has the names of MPI calls.
bool calls_mpi(std::span<const std::byte> image);

class RegionMpi {
  public:
    // Before an image that calls MPI is loaded. An image for an MPI that the process does not have is loaded
    // as it is.
    Status load(target::Target& target, std::string& problem);
    // These are what mpi/runtime/regions.h asks of the plug-in.
    bool begin(std::uint32_t rank, std::uint32_t size, std::string& problem);
    bool take(void* mine, std::size_t bytes);
    void give(const void* all, std::size_t bytes);
    bool joined();
    void end();

  private:
    Status call(std::uint64_t function, std::initializer_list<std::uint64_t> arguments);
    Status read(void* to, std::uint64_t address, std::uint64_t bytes);
    Status write(std::uint64_t address, const void* from, std::uint64_t bytes);
    bool next_step();
    Status tell_handles();

    struct Functions {
        std::uint64_t begin = 0, step = 0, go_on = 0, names = 0, learn = 0, end = 0;
    };
    std::mutex mutex_;
    target::Target* target_ = nullptr;  // null: the library is not loaded
    Functions functions_;
    std::uint32_t stream_ = 0;
    std::uint64_t record_ = 0;  // device memory
    region_mpi::Step step_;     // the library's latest
    std::string problem_;
};

}  // namespace offpath::openmp
