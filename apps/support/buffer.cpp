#include "support/buffer.h"

#include <CLI/CLI.hpp>

namespace mpi_support {

CLI::Option* add_allocator_option(CLI::App& app, Allocator& allocator) {
    return app
        .add_option_function<std::string>(
            "--alloc",
            [&allocator](const std::string& name) {
                allocator = name == "mpi" ? Allocator::kMpi : Allocator::kMalloc;
            },
            "Where communication buffers come from: malloc, or mpi for MPI_Alloc_mem")
        ->check(CLI::IsMember({"malloc", "mpi"}))
        ->default_str("malloc");
}

}  // namespace mpi_support
