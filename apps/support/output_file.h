// A check of --json that refuses a file that cannot be written, before anything is computed.
//
// Only rank 0 writes, so only rank 0 checks: the directory need not exist on other nodes. Command lines are
// parsed before MPI starts, so the rank is taken from the launcher's variables.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "command_line/command_line.h"

namespace mpi_support {

inline bool launched_as_first_rank() {
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
        if (const char* text = std::getenv(name)) return std::atoi(text) == 0;
    return true;
}

// For Option::check(). Accepts "-", which is standard output, and paths that can be created or
// overwritten.
inline cli::Validator output_file() {
    return cli::Validator(
        [](const std::string& where) -> std::string {
            if (where.empty() || where == "-" || !launched_as_first_rank()) return "";
            std::error_code error;
            const std::filesystem::path path(where);
            const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
            const bool there = std::filesystem::exists(path, error);
            if (!std::filesystem::is_directory(path, error) &&
                access((there ? path : folder).c_str(), there ? W_OK : W_OK | X_OK) == 0)
                return "";
            return "cannot write '" + where + "': give a path in a writable folder, or - for standard output";
        },
        "FILE");
}

}  // namespace mpi_support
