#include <vector>

#include "command_line/command_line.h"
#include "minimd/program.h"
#include "support/mpi_program.h"

int main(int argc, char** argv) {
    cli::App app("Molecular dynamics with short-range forces, as the miniMD benchmark has it", "minimd");
    const minimd::CommandLine command_line(app);
    std::vector<char*> arguments = minimd::with_double_dashes(argc, argv);
    return mpi_support::run_mpi_program(
        static_cast<int>(arguments.size()) - 1, arguments.data(), app,
        [&](const mpi_support::World&) { return minimd::run_program(command_line); });
}
