// The variants of this program, by the libraries with which it was built.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bspmm/exchange.h"

namespace bspmm {

struct Variant {
    std::string name;
    std::string summary;
    int lookahead = 0;  // default number of units ahead of the current one
    // Starts the library; the exchange ends it when it is destroyed. `heap_bytes`: the symmetric memory that
    // each rank needs.
    std::unique_ptr<Exchange> (*start)(std::size_t heap_bytes) = nullptr;
};

// In the order of the help text.
const std::vector<Variant>& variants();
// The OpenSHMEM library that the program was built with.
const char* shmem_library();

std::unique_ptr<Exchange> start_mpi(std::size_t heap_bytes);
std::unique_ptr<Exchange> start_shmem(std::size_t heap_bytes);
std::unique_ptr<Exchange> start_shmem_nbi(std::size_t heap_bytes);
std::unique_ptr<Exchange> start_offload(std::size_t heap_bytes);
std::unique_ptr<Exchange> start_compute_offload(std::size_t heap_bytes);

}  // namespace bspmm
