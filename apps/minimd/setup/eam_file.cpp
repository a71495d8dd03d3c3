#include "minimd/setup/eam_file.h"

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "minimd/files/shared_text.h"
#include "minimd/setup/line_source.h"
#include "support/mpi_program.h"

namespace minimd {

namespace {

// The pair energy is Z(r)^2 / r in Hartree and Bohr radii, as DYNAMO rounds them.
constexpr double hartree_bohr = 27.2 * 0.529;

constexpr int fewest_values = 6;
constexpr int most_values = 10000000;

std::vector<double> table(LineSource& lines, int count, const std::string& what) {
    std::vector<double> values;
    while (values.size() < static_cast<std::size_t>(count)) {
        const std::string expected = what + ", of which " + std::to_string(values.size()) + " of " +
                                     std::to_string(count) + " were read";
        lines.need(expected);
        for (std::size_t i = 0; i < lines.words().size(); ++i) {
            if (values.size() == static_cast<std::size_t>(count))
                lines.fail("the last of the " + std::to_string(count) + " values of " + what +
                           " to end its line");
            values.push_back(lines.number_at(i, expected));
        }
    }
    return values;
}

std::string said(const std::vector<std::string>& places) {
    std::string text;
    for (const std::string& place : places)
        text += "\n  " + place;
    return text;
}

}  // namespace

EamTables parse_funcfl(std::istream& in, const std::string& name) {
    LineSource lines(in, name);
    EamTables tables;
    tables.file = name;
    lines.need("a title");
    lines.need("atomic number and mass");
    tables.atomic_number = static_cast<int>(lines.integer_at(0, "the atomic number", 0, 1000));
    tables.mass = lines.positive_at(1, "the mass");

    lines.need("nrho, drho, nr, dr and cutoff");
    const int nrho =
        static_cast<int>(lines.integer_at(0, "the number of densities", fewest_values, most_values));
    const double drho = lines.positive_at(1, "the spacing of densities");
    const int nr =
        static_cast<int>(lines.integer_at(2, "the number of distances", fewest_values, most_values));
    const double dr = lines.positive_at(3, "the spacing of distances");
    tables.cutoff = lines.positive_at(4, "the cutoff");

    std::vector<double> frho = table(lines, nrho, "embedding energies");
    std::vector<double> z2r = table(lines, nr, "effective charges");
    std::vector<double> rhor = table(lines, nr, "densities");
    while (lines.next())
        if (!lines.words().empty() && to_double(lines.words()[0]))
            lines.fail("the end of the tables, which line 3 gives " + std::to_string(nrho) + " + 2 x " +
                       std::to_string(nr) + " values");
    for (double& z : z2r)
        z *= hartree_bohr * z;
    // DYNAMO's readers leave out the last value of each table. So do the programs whose results ours are
    // compared with.
    for (std::vector<double>* values : {&frho, &z2r, &rhor})
        values->pop_back();
    tables.frho = Spline(frho, drho);
    tables.z2r = Spline(z2r, dr);
    tables.rhor = Spline(rhor, dr);
    return tables;
}

std::vector<std::string> eam_places(const std::string& name) {
    std::vector<std::string> places{name};
    if (name.find('/') != name.npos) return places;
    if (const char* folders = std::getenv("LAMMPS_POTENTIALS")) {
        std::istringstream all(folders);
        for (std::string folder; std::getline(all, folder, ':');)
            if (!folder.empty()) places.push_back(folder + "/" + name);
    }
    places.push_back("/usr/share/lammps/potentials/" + name);
    places.push_back("/usr/local/share/lammps/potentials/" + name);
    return places;
}

EamTables read_eam(const std::string& name, MPI_Comm comm) {
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    std::string found, error;
    if (rank == 0) {
        const std::vector<std::string> places = eam_places(name);
        for (const std::string& place : places)
            if (std::error_code ignored; found.empty() && std::filesystem::is_regular_file(place, ignored))
                found = place;
        if (found.empty())
            error = "there is no file of the EAM potential '" + name + "'; looked for" + said(places) +
                    "\nName one with --eam-file, or install Debian's package lammps-data.";
    }
    throw_shared(error, comm);
    found = shared_string(found, comm);
    const std::optional<std::string> text = shared_text(found, comm);
    if (!text) throw mpi_support::UsageError("cannot read the EAM potential '" + found + "'");
    std::istringstream in(*text);
    return parse_funcfl(in, found);
}

}  // namespace minimd
