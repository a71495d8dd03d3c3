// The variants of this program: what the libraries that it was built with can do.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bspmm/exchange.h"

namespace bspmm {

struct Variant {
    std::string name;
    std::string summary;
    int lookahead = 0;  // units ahead of the one that is computed, unless asked for otherwise
    // Starts the library; the exchange ends it when it is destroyed. `heap_bytes`: the symmetric memory that
    // each rank will need.
    std::unique_ptr<Exchange> (*start)(std::size_t heap_bytes) = nullptr;
};

// In the order of the help text.
const std::vector<Variant>& variants();
// The library behind those of OpenSHMEM.
const char* shmem_library();

std::unique_ptr<Exchange> start_mpi(std::size_t heap_bytes);
std::unique_ptr<Exchange> start_shmem(std::size_t heap_bytes);
std::unique_ptr<Exchange> start_shmem_nbi(std::size_t heap_bytes);
std::unique_ptr<Exchange> start_offload(std::size_t heap_bytes);
std::unique_ptr<Exchange> start_compute_offload(std::size_t heap_bytes);

}  // namespace bspmm
