// Molecular dynamics as miniMD does it: the command line and what is reported; the engine is in the rooms
// beside this.
#include <optional>

#include "minimd/domain/decomposition.h"
#include "minimd/dynamics/simulation.h"
#include "minimd/report/json.h"
#include "minimd/report/screen.h"
#include "minimd/setup/command_line.h"
#include "minimd/setup/eam_file.h"
#include "minimd/setup/lattice.h"
#include "support/mpi_program.h"

namespace {

using namespace minimd;

template <typename Real>
Results simulate(const Settings& settings, const Decomposition& decomposition, const System& system,
                 const EamTables* tables, const Screen& screen) {
    Simulation<Real> simulation(settings, decomposition, system, tables);
    simulation.on_row([&](const ThermoRow& row) { screen.thermo(row); });
    screen.start();
    return simulation.run();
}

int run(const CommandLine& command_line, const mpi_support::World& world) {
    const Settings settings = command_line.settings(MPI_COMM_WORLD);
    const Screen screen(settings, world.rank);
    screen.begin();
    const Vec3 box = lattice_box(settings);
    const Decomposition decomposition(MPI_COMM_WORLD, box);
    std::optional<EamTables> tables;
    if (settings.potential == Potential::eam) tables = read_eam(settings.eam_file, MPI_COMM_WORLD);
    const System system = create_lattice(settings, box, decomposition, tables ? tables->mass : 1.0);
    const EamTables* const eam = tables ? &*tables : nullptr;
    screen.header(system, world.ranks, usual_bins(settings, system));
    for (const std::string& note : settings.notes)
        screen.note(note);
    const Results results = settings.precision == Precision::single_precision
                                ? simulate<float>(settings, decomposition, system, eam, screen)
                                : simulate<double>(settings, decomposition, system, eam, screen);
    const Summary summary = summarise(results, MPI_COMM_WORLD);
    screen.summary(summary);
    if (world.rank == 0) write_json(settings, summary);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Molecular dynamics with short-range forces, as the miniMD benchmark has it", "minimd");
    const CommandLine command_line(app);
    std::vector<char*> arguments = with_double_dashes(argc, argv);
    return mpi_support::run_mpi_program(
        static_cast<int>(arguments.size()) - 1, arguments.data(), app,
        [&](const mpi_support::World& world) { return run(command_line, world); });
}
