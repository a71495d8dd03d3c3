// Code that the MPI programs of this tree share: start, command line, errors, results.
//
// run_mpi_program() owns MPI_Init and MPI_Finalize. Every rank parses its command line; one of them prints
// help and usage errors. Exit codes: 0 success, 1 wrong results, 2 wrong usage. The programs use MPI from one
// thread. Of offpath, only its parser of command lines is used.
#pragma once

#include <mpi.h>

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace offpath::command_line {
class App;
}

namespace mpi_support {

struct World {
    int rank = 0;
    int ranks = 1;
};

// Invalid input that every rank detects alike, before any communication that depends on it.
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Initialises MPI, parses, runs `body` and finalises. Any other exception ends the whole job with a message.
int run_mpi_program(int argc, char** argv, offpath::command_line::App& app,
                    const std::function<int(const World&)>& body);

// Writes one line to the file at `where`; "-" is standard output. Throws UsageError if that fails.
void write_json_line(const nlohmann::ordered_json& line, const std::string& where);

// Element-wise maximum over all ranks, on every rank.
std::vector<double> max_over_ranks(std::vector<double> values, MPI_Comm comm = MPI_COMM_WORLD);
double max_over_ranks(double value, MPI_Comm comm = MPI_COMM_WORLD);
bool all_ranks_agree(bool ok, MPI_Comm comm = MPI_COMM_WORLD);

// Returns the median. For an even number of values it is the mean of the two middle ones; for no values it is
// 0.
double median(std::vector<double> values);

}  // namespace mpi_support
