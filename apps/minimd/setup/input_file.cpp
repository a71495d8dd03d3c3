#include "minimd/setup/input_file.h"

#include <limits>
#include <sstream>

#include "minimd/base/limits.h"
#include "minimd/files/shared_text.h"
#include "minimd/setup/line_source.h"
#include "support/mpi_program.h"

namespace minimd {

namespace {

constexpr double any = std::numeric_limits<double>::max();

// Whether the first word of the next line is `second`. It must be `first` or `second`.
bool second_of(LineSource& lines, const std::string& what, const std::string& first,
               const std::string& second) {
    const std::string expected = what + ", '" + first + "' or '" + second + "'";
    lines.need(expected);
    if (lines.words().empty()) lines.fail(expected);
    const std::string_view word = lines.words()[0];
    if (word != first && word != second) lines.fail(expected, word);
    return word == second;
}

}  // namespace

void parse_input(std::istream& in, const std::string& name, Settings& settings) {
    LineSource lines(in, name);
    lines.need("a title");
    lines.need("the second line of the title, which may be empty");
    settings.units = second_of(lines, "units", "lj", "metal") ? Units::metal : Units::lj;

    const std::string data = "the name of a LAMMPS data file, or none";
    lines.need(data);
    if (lines.words().empty()) lines.fail(data);
    settings.data_file.reset();
    if (lines.words()[0] != "none") settings.data_file = std::string(lines.words()[0]);

    settings.potential = second_of(lines, "a force style", "lj", "eam") ? Potential::eam : Potential::lj;

    lines.need("epsilon and sigma");
    settings.epsilon = lines.positive_at(0, "epsilon");
    settings.sigma = lines.positive_at(1, "sigma");

    lines.need("the numbers of unit cells in x, y and z");
    for (int d = 0; d < 3; ++d)
        settings.unit_cells[d] = static_cast<int>(lines.integer_at(
            static_cast<std::size_t>(d), std::string("the unit cells in ") + "xyz"[d], 1, most_unit_cells));
    lines.need("the number of steps");
    settings.steps = static_cast<int>(lines.integer_at(0, "the number of steps", 0, most_steps));
    lines.need("the time step");
    settings.timestep = lines.positive_at(0, "the time step");
    lines.need("the initial temperature");
    settings.temperature = lines.number_at(0, "the initial temperature", 0.0, any);
    lines.need("the density");
    settings.density = lines.positive_at(0, "the density");
    lines.need("the steps between neighbour builds");
    settings.reneighbor_every =
        static_cast<int>(lines.integer_at(0, "the steps between neighbour builds", 1, most_steps));
    lines.need("force cutoff and neighbour skin");
    settings.cutoff = lines.positive_at(0, "the force cutoff");
    settings.skin = lines.number_at(1, "the neighbour skin", 0.0, any);
    lines.need("the steps between thermodynamic lines");
    settings.thermo_every = static_cast<int>(
        lines.integer_at(0, "the steps between thermodynamic lines (0: first and last)", 0, most_steps));
}

void read_input_file(const std::string& path, MPI_Comm comm, Settings& settings) {
    settings.input_file = path.empty() ? default_input_file : path;
    const std::optional<std::string> text = shared_text(settings.input_file, comm);
    if (text) {
        std::istringstream in(*text);
        parse_input(in, settings.input_file, settings);
    } else if (path.empty()) {
        settings.notes.push_back(
            "there is no " + settings.input_file +
            " here: 32 x 32 x 32 unit cells of Lennard-Jones atoms, 100 steps, as in miniMD's");
    } else {
        throw mpi_support::UsageError("cannot read the input file '" + path + "'");
    }
}

}  // namespace minimd
