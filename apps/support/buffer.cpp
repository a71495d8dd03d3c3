#include "support/buffer.h"

#include "command_line/command_line.h"

namespace mpi_support {

cli::Option* add_allocator_option(cli::App& app, Allocator& allocator) {
    return app
        .add_option_function(
            "--alloc",
            [&allocator](const std::string& name) {
                allocator = name == "mpi" ? Allocator::kMpi : Allocator::kMalloc;
            },
            "Where communication buffers come from: malloc, or mpi for MPI_Alloc_mem")
        ->check(cli::IsMember({"malloc", "mpi"}))
        ->default_str("malloc");
}

}  // namespace mpi_support
