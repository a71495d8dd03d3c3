// The summary as a file, for OFFPATH_SUMMARY=FILE. In MPI_Finalize each part of the front end adds a section,
// and rank 0 writes them as one JSON object. Without the variable nothing is kept. Threads: the thread in
// MPI_Init or MPI_Finalize.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace offpath::mpi {

// Checks that rank 0 can write the file that its environment asks for, if it asks for one; then true. Throws
// std::invalid_argument if it cannot.
bool check_summary_file();

// For rank 0 of the world.
void add_to_summary_file(const char* section, const nlohmann::json& values);
void write_summary_file();

}  // namespace offpath::mpi
