#include "minimd/setup/command_line.h"

#include <cstring>
#include <map>

#include "command_line/command_line.h"
#include "minimd/base/limits.h"
#include "minimd/files/dump_format.h"
#include "minimd/setup/input_file.h"
#include "minimd/setup/line_source.h"
#include "support/mpi_program.h"

namespace minimd {

namespace {

// Names that stand for values; the flag's help lists them.
template <typename T, typename Target>
cli::Option* add_choice(cli::App& app, const std::string& flags, Target& target,
                        const std::map<std::string, T>& choices, const std::string& description) {
    std::vector<std::string> names;
    for (const auto& choice : choices)
        names.push_back(choice.first);
    return app
        .add_option_function(
            flags, [&target, choices](const std::string& name) { target = choices.at(name); }, description)
        ->check(cli::IsMember(names));
}

// Accepts a whole number as people write it: the parser itself reads 010 as 8.
cli::Validator whole_number(std::int64_t low, std::int64_t high) {
    const std::string range = "from " + std::to_string(low) + " to " + std::to_string(high);
    return {[=](std::string& word) {
                const std::optional<std::int64_t> value = to_integer(word);
                if (!value || *value < low || *value > high)
                    return "expected a whole number " + range + ", found '" + word + "'";
                word = std::to_string(*value);
                return std::string();
            },
            range};
}

cli::Validator fraction() {
    return {[](std::string& word) {
                const std::optional<double> value = to_double(word);
                return value && *value >= 0.0 && *value <= 1.0
                           ? std::string()
                           : "expected a number from 0 to 1, found '" + word + "'";
            },
            "from 0 to 1"};
}

}  // namespace

std::vector<char*> with_double_dashes(int argc, char** argv) {
    static char nx[] = "--nx", ny[] = "--ny", nz[] = "--nz", newton[] = "--ghost_newton", sse[] = "--sse",
                map[] = "--device_map", gpus[] = "--num_gpus";
    static constexpr struct {
        const char* given;
        char* taken;
    } names[] = {{"-nx", nx},   {"-ny", ny},  {"-nz", nz},  {"-gn", newton},
                 {"-sse", sse}, {"-dm", map}, {"-ng", gpus}};
    std::vector<char*> arguments(argv, argv + argc);
    for (char*& argument : arguments)
        for (const auto& name : names)
            if (std::strcmp(argument, name.given) == 0) argument = name.taken;
    arguments.push_back(nullptr);
    return arguments;
}

CommandLine::CommandLine(cli::App& app) {
    app.default_take_last();
    add_minimd_flags(app);
    add_own_flags(app);
    add_ignored_flags(app);
}

void CommandLine::add_minimd_flags(cli::App& app) {
    app.default_group("Run");
    app.add_option("-t,--num_threads", flags_.threads, "Threads of a rank (default 1)")
        ->transform(whole_number(1, most_threads));
    app.add_option("--teams", flags_.teams, "Thread teams of a rank; one is used, whatever is given")
        ->transform(whole_number(1, most_threads));
    app.add_option("--half_neigh", flags_.half_neigh, "1 or -1: half neighbour lists (default), 0: full ones")
        ->transform(whole_number(-1, 1));
    app.add_option("--ghost_newton", flags_.ghost_newton,
                   "-gn: 1: forces on ghosts travel back (default), 0: their pairs are computed twice");
    app.add_option("-b,--neigh_bins", flags_.bins, "Cells of the neighbour grid in each dimension")
        ->transform(whole_number(1, most_bins));
    app.add_option("--sort", flags_.sort_every, "Accepted: atoms are sorted with each neighbour build")
        ->transform(whole_number(-1, most_steps));
    app.add_flag("--check_exchange", flags_.check_exchange,
                 "Accepted: an atom that moves further than the neighbouring subdomain is always an error");
    app.add_flag("--safe_exchange", flags_.safe_exchange, "Accepted, without effect");

    app.default_group("Problem");
    app.add_option("-i,--input_file", input_file_, "miniMD's input file (default in.lj.miniMD)");
    app.add_option("-n,--nsteps", steps_, "Time steps")->transform(whole_number(0, most_steps));
    app.add_option("-s,--size", size_, "Unit cells in each dimension")
        ->transform(whole_number(1, most_unit_cells));
    for (int d = 0; d < 3; ++d) {
        const char axis = "xyz"[d];
        app.add_option(std::string("--n") + axis, cells_[d],
                       std::string("-n") + axis + ": unit cells in " + axis +
                           (d == 0 ? ", and where nothing else is given, in the other dimensions" : ""))
            ->transform(whole_number(1, most_unit_cells));
    }
    app.add_option("--ntypes", flags_.types, "Types of atoms, all with the same parameters (default 4)")
        ->transform(whole_number(1, most_types));
    add_choice<Units>(app, "-u,--units", units_, {{"lj", Units::lj}, {"metal", Units::metal}}, "Units");
    add_choice<Potential>(app, "-p,--force", potential_, {{"lj", Potential::lj}, {"eam", Potential::eam}},
                          "Potential");
    app.add_option("-f,--data_file", data_file_, "Read the atoms from this LAMMPS data file");
    app.add_option("--restart", flags_.restart_from, "Go on from this file, which --write-restart made");

    app.default_group("Reports");
    app.add_option("-o,--yaml_output", flags_.yaml_output,
                   "1: write miniMD-YEAR-MONTH-DAY-HOUR-MINUTE-SECOND.yaml (default 0)")
        ->transform(whole_number(0, 3));
    app.add_flag("--yaml_screen", flags_.yaml_screen, "With -o 1: the same on standard output");
}

void CommandLine::add_own_flags(cli::App& app) {
    app.add_option("--json", flags_.json,
                   "Write the results to this file as one JSON line; - prints that instead of the rest");
    cli::Option* dump = app.add_option("--dump", flags_.dump,
                                       "Write the atoms to this file; its ending .xyz or .lammpstrj says how")
                            ->check([](const std::string& path) {
                                return dump_format_of(path)
                                           ? std::string()
                                           : "'" + path + "' ends neither in .xyz nor in .lammpstrj";
                            });
    app.add_option("--dump-every", flags_.dump_every, "Steps between frames (default 0: first and last step)")
        ->transform(whole_number(0, most_steps))
        ->needs(dump);
    cli::Option* write =
        app.add_option("--write-restart", flags_.restart_to, "Write a file to go on from, at the end");
    app.add_option("--restart-every", flags_.restart_every,
                   "Steps after which it is written as well (default 0: none)")
        ->transform(whole_number(0, most_steps))
        ->needs(write);

    app.default_group("offpath");
    add_choice<Precision>(app, "--precision", flags_.precision,
                          {{"single", Precision::single_precision}, {"double", Precision::double_precision}},
                          "Of positions and forces (default double)");
    add_choice<OffPath>(
        app, "--offpath", flags_.offpath, {{"paper", OffPath::paper}, {"balanced", OffPath::balanced}},
        "Let devices compute forces while hosts build lists, as published or with all work shared");
    add_choice<DeviceKind>(
        app, "--device-kind", flags_.device,
        {{"ranks", DeviceKind::ranks}, {"runtime", DeviceKind::runtime}, {"openmp", DeviceKind::openmp}},
        "A device is a rank of the job (default), or runs kernels, started through "
        "offpath's runtime or in OpenMP target regions");
    app.add_option(
           "--device-share", flags_.device_share,
           "balanced: part of the pairs without ghosts that devices take (default: by measured speed)")
        ->check(fraction());
    app.add_flag("!--no-share-ordinary", flags_.share_ordinary_steps,
                 "balanced: devices take part in steps with a neighbour build only");
    app.add_flag("!--no-device-ghosts", flags_.device_ghosts,
                 "balanced: hosts exchange ghosts themselves in steps without a neighbour build");
    app.add_flag("!--no-device-trials", flags_.device_trials,
                 "balanced: devices take part even where hosts alone are found to be faster");
    app.add_option("--device-threads", flags_.device_threads, "OpenMP threads of a device (default: as -t)")
        ->transform(whole_number(1, most_threads));
    app.add_option("--device-slowness", flags_.device_slowness,
                   "Devices compute each force so many times, to stand for slower ones (default 1)")
        ->transform(whole_number(1, 100));
    add_choice<Where>(app, "--where", flags_.where,
                      {{"hosts", Where::hosts}, {"devices", Where::devices}, {"all", Where::all}},
                      "In a job with device ranks, without the flags above: who simulates (default hosts)");
    add_choice<HaloKind>(app, "--halo", flags_.halo,
                         {{"blocking", HaloKind::blocking},
                          {"overlapped", HaloKind::overlapped},
                          {"polled", HaloKind::polled},
                          {"offloaded", HaloKind::offloaded}},
                         "Ghosts travel while nothing else happens, or while pairs without ghosts are "
                         "computed (default), without or with calls of MPI between those, or by offpath's "
                         "devices");
    app.add_flag("--tunnel", flags_.tunnel, "Ghosts travel from device to device");
    app.add_flag("--split-boundary", flags_.split_boundary, "Devices compute the pairs that need ghosts");
    app.add_option("--intensity", flags_.intensity, "Evaluations of each pair's force (default 1)")
        ->transform(whole_number(1, most_intensity));
    app.add_option("--lanes", flags_.lanes, "Of the kernels' vectors (default: those that are fastest here)")
        ->check(cli::IsMember({2, 4, 8, 16}));
    app.add_option("--eam-file", flags_.eam_file,
                   "Tables of the EAM potential, a funcfl file (default Cu_u6.eam)");
    add_choice<SkinCheck>(app, "--skin-check", flags_.skin_check,
                          {{"off", SkinCheck::off}, {"warn", SkinCheck::warn}, {"error", SkinCheck::error}},
                          "When atoms outrun the skin between neighbour builds (default warn)");
}

void CommandLine::add_ignored_flags(cli::App& app) {
    app.default_group("Of other variants of miniMD: accepted, without effect");
    const auto ignore = [this](const std::string& flag) {
        return [this, flag](const std::string&) { ignored_.push_back(flag); };
    };
    app.add_option_function("--sse", ignore("-sse"), "-sse: instructions to use");
    app.add_option_function("-d,--device", ignore("--device"), "A GPU");
    app.add_option_function("--num_gpus", ignore("--num_gpus"), "-ng: GPUs of a node");
    app.add_option_function("--team_neigh", ignore("--team_neigh"), "Teams that search pairs");
    app.add_option_function("--skip_gpu", ignore("--skip_gpu"), "A GPU");
    app.add_flag_callback(
        "--device_map", [this] { ignored_.push_back("--device_map"); }, "-dm: GPUs to ranks");
}

void CommandLine::apply_size(Settings& settings) const {
    if (size_) settings.unit_cells.fill(*size_);
    if (cells_[0] && !size_) settings.unit_cells.fill(*cells_[0]);
    for (int d = 0; d < 3; ++d)
        if (cells_[d]) settings.unit_cells[d] = *cells_[d];
}

Settings CommandLine::settings(MPI_Comm comm) const {
    Settings settings = flags_;
    read_input_file(input_file_, comm, settings);
    if (steps_) settings.steps = *steps_;
    apply_size(settings);
    if (units_) settings.units = *units_;
    if (potential_) settings.potential = *potential_;
    if (data_file_) settings.data_file = data_file_;
    for (const std::string& flag : ignored_)
        settings.notes.push_back(flag + " is of other variants of miniMD and without effect here");
    // A negative value is miniMD's default, given explicitly.
    if (settings.sort_every && *settings.sort_every < 0) settings.sort_every.reset();
    if (settings.yaml_screen && settings.yaml_output == 0)
        settings.notes.push_back("--yaml_screen is without effect: -o 1 is not there");
    if (settings.teams > 1) settings.notes.push_back("--teams is without effect: a rank has one team");
    if (settings.restart_from && settings.data_file) {
        settings.notes.push_back("the atoms come from " + *settings.restart_from + ", not from " +
                                 *settings.data_file);
        settings.data_file.reset();
    }
    const std::optional<std::string>& file =
        settings.restart_from ? settings.restart_from : settings.data_file;
    if (file && (size_ || cells_[0] || cells_[1] || cells_[2]))
        settings.notes.push_back("unit cells (-s, -nx, -ny, -nz) are without effect: the atoms come from " +
                                 *file);
    return settings;
}

}  // namespace minimd
