#include "minimd/program.h"

#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "minimd/domain/decomposition.h"
#include "minimd/dynamics/eam_forces.h"
#include "minimd/dynamics/simulation.h"
#include "minimd/files/shared_text.h"
#include "minimd/kernels/kernels.h"
#include "minimd/offpath/eam_kernel_device.h"
#include "minimd/offpath/kernel_device.h"
#include "minimd/offpath/offload.h"
#include "minimd/offpath/places.h"
#include "minimd/offpath/rank_device.h"
#include "minimd/offpath/rank_server.h"
#include "minimd/offpath/runtime_halo.h"
#include "minimd/offpath/runtime_runner.h"
#include "minimd/offpath/target_runner.h"
#include "minimd/offpath/tunnel.h"
#include "minimd/report/json.h"
#include "minimd/report/outputs.h"
#include "minimd/report/screen.h"
#include "minimd/report/snapshots.h"
#include "minimd/report/yaml.h"
#include "minimd/setup/eam_file.h"
#include "minimd/setup/feasible.h"
#include "minimd/setup/system_source.h"
#include "support/mpi_program.h"

namespace minimd {

namespace {

// What a device has to know about the system: everything except the atoms.
struct Shape {
    Vec3 box;
    double atoms, density, mass;
};

void share_shape(const System& system, int root) {
    Shape shape{system.box, static_cast<double>(system.atoms), system.density, system.mass};
    MPI_Bcast(&shape, static_cast<int>(sizeof shape / sizeof(double)), MPI_DOUBLE, root, MPI_COMM_WORLD);
}

System receive_shape(int root) {
    Shape shape{};
    MPI_Bcast(&shape, static_cast<int>(sizeof shape / sizeof(double)), MPI_DOUBLE, root, MPI_COMM_WORLD);
    System system;
    system.box = shape.box;
    system.atoms = static_cast<std::int64_t>(shape.atoms);
    system.density = shape.density;
    system.mass = shape.mass;
    return system;
}

template <typename Real>
KernelSettings kernel_settings(const Settings& settings) {
    const int threads = settings.device_threads > 0 ? settings.device_threads : settings.threads;
    return {kernels<Real>(settings.lanes).lanes,
            threads,
            settings.device_slowness,
            {settings.cutoff, settings.epsilon, settings.sigma, settings.intensity}};
}

// Ghosts move by MPI if there is no device.
template <typename Real>
std::unique_ptr<HaloCarrier<Real>> offloaded_halo(const Settings& settings, MPI_Comm comm) {
    auto halo = std::make_unique<RuntimeHalo<Real>>(comm, settings.potential == Potential::eam);
    if (halo->status() == OFFPATH_OK) return halo;
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    if (rank == 0)
        std::fprintf(stderr,
                     "minimd: --halo offloaded: no device answers on every node (%s): ghosts go by MPI; "
                     "offpath run or OFFPATH_AUTOSTART=1 start one\n",
                     offpath_status_string(halo->status()));
    return nullptr;
}

template <typename Real>
std::unique_ptr<Device<Real>> device_for(const Settings& settings, const Places& places, MPI_Comm comm,
                                         const EamTables* tables) {
    if (settings.device == DeviceKind::ranks)
        return std::make_unique<RankDevice<Real>>(MPI_COMM_WORLD, places.device(), places.sole_host(),
                                                  places.near_device());
    const KernelSettings kernels = kernel_settings<Real>(settings);
    const runtime::Numbers numbers{sizeof(Real), kernels.lanes};
    std::unique_ptr<KernelRunner> runner;
    if (settings.device == DeviceKind::runtime)
        runner = std::make_unique<RuntimeRunner>(comm, numbers);
    else
        runner = std::make_unique<TargetRunner>(comm, numbers);
    if (settings.potential == Potential::lj)
        return std::make_unique<KernelDevice<Real>>(std::move(runner), kernels);
    return std::make_unique<EamKernelDevice<Real>>(std::move(runner), kernels,
                                                   EamPairTable<Real>(*tables).table());
}

template <typename Real>
Results simulate(const Settings& settings, const Places& places, const Decomposition& decomposition,
                 const System& system, const EamTables* tables, const Screen& screen) {
    Simulation<Real> simulation(settings, decomposition, system, tables);
    if (settings.tunnel)
        simulation.use(std::make_unique<Tunnel<Real>>(MPI_COMM_WORLD, places.device()));
    else if (settings.needs_device())
        simulation.use(std::make_unique<Offload<Real>>(
            settings, simulation.forces(), device_for<Real>(settings, places, decomposition.comm(), tables),
            decomposition.comm()));
    if (settings.halo == HaloKind::offloaded)
        if (auto halo = offloaded_halo<Real>(settings, decomposition.comm())) simulation.use(std::move(halo));
    Snapshots snapshots(settings, system, tables != nullptr ? element_symbol(tables->atomic_number) : "Ar",
                        decomposition.comm());
    simulation.on_row([&](const ThermoRow& row) { screen.thermo(row); });
    simulation.on_step([&](std::int64_t step) {
        if (!snapshots.due(step)) return;
        simulation.settle();
        snapshots.write(step, simulation.atoms());
    });
    screen.start();
    return simulation.run();
}

// On the ranks that simulate: makes the atoms, runs the simulation and reports.
void simulate_and_report(Settings settings, const Places& places) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(places.simulation(), &rank);
    MPI_Comm_size(places.simulation(), &ranks);
    const Screen screen(settings, rank);
    check_outputs(settings, places.simulation());
    screen.begin();
    std::optional<EamTables> tables;
    if (settings.potential == Potential::eam) tables = read_eam(settings.eam_file, places.simulation());
    const EamTables* const eam = tables ? &*tables : nullptr;
    const std::unique_ptr<SystemSource> source =
        open_source(settings, places.simulation(), tables ? std::optional(tables->mass) : std::nullopt);
    const Decomposition decomposition(places.simulation(), source->box());
    check_feasible(settings, decomposition, static_cast<double>(source->atoms()));
    System system = source->load(decomposition);
    if (places.lanes() != 0) {
        settings.lanes = places.lanes();
        share_shape(system, places.root());
    }
    const std::array<int, 3> bins = usual_bins(settings, system);
    screen.header(system, ranks, bins);
    for (const std::string& note : settings.notes)
        screen.note(note);
    for (const std::string& note : source->notes())
        screen.note(note);
    const Results results = settings.precision == Precision::single_precision
                                ? simulate<float>(settings, places, decomposition, system, eam, screen)
                                : simulate<double>(settings, places, decomposition, system, eam, screen);
    const Summary summary = summarise(results, places.simulation());
    screen.summary(summary);
    // Only rank 0 writes. It writes each report even if the other one failed, and all ranks learn what went
    // wrong.
    std::string wrong;
    const auto attempt = [&](const auto& write) {
        try {
            if (rank == 0) write();
        } catch (const mpi_support::UsageError& error) {
            wrong += (wrong.empty() ? "" : "\n") + std::string(error.what());
        }
    };
    attempt([&] { write_json(settings, summary); });
    attempt([&] { write_yaml(settings, system, bins, summary); });
    throw_shared(wrong, places.simulation());
}

// One rank reports an error that all ranks of the simulation know of, and ends the job.
void end_job(const Places& places, const std::string& message) {
    int rank = 0;
    MPI_Comm_rank(places.simulation(), &rank);
    if (rank == 0) throw std::runtime_error(message);
    MPI_Barrier(places.simulation());
}

void simulate(const Settings& settings, const Places& places) {
    try {
        simulate_and_report(settings, places);
    } catch (const mpi_support::UsageError& wrong) {
        int ranks = 1, all = 1;
        MPI_Comm_size(places.simulation(), &ranks);
        MPI_Comm_size(MPI_COMM_WORLD, &all);
        if (ranks == all) throw;
        // Other ranks wait for work, so the job can only end as a whole.
        end_job(places, wrong.what());
    } catch (const CommonSimulationError& wrong) {
        end_job(places, wrong.what());
    }
}

void serve(Settings settings, const Places& places) {
    if (settings.device_threads > 0) settings.threads = settings.device_threads;
    const System system = receive_shape(places.root());
    std::optional<EamTables> tables;
    try {
        if (settings.potential == Potential::eam) tables = read_eam(settings.eam_file, MPI_COMM_SELF);
    } catch (const mpi_support::UsageError& wrong) {
        // This is an error of this device alone: its hosts have read their file.
        throw std::runtime_error(std::string("a device, which reads this itself: ") + wrong.what());
    }
    const EamTables* const eam = tables ? &*tables : nullptr;
    if (settings.precision == Precision::single_precision) {
        serve<float>(settings, places.server(), system, eam, places.lanes(), settings.device_slowness);
    } else {
        serve<double>(settings, places.server(), system, eam, places.lanes(), settings.device_slowness);
    }
}

// The ranks' processors may differ.
void check_lanes(const Settings& settings) {
    std::string problem;
    try {
        if (settings.precision == Precision::single_precision)
            (void)kernels<float>(settings.lanes);
        else
            (void)kernels<double>(settings.lanes);
    } catch (const std::invalid_argument& wrong) {
        problem = std::string("--lanes: ") + wrong.what();
    }
    if (!mpi_support::all_ranks_agree(problem.empty()))
        throw mpi_support::UsageError(
            problem.empty() ? "--lanes: the processors of some ranks have no such kernels" : problem);
}

// Refuses flags that another flag makes pointless.
void check_contradictions(const Settings& settings) {
    using mpi_support::UsageError;
    if (settings.needs_device() && settings.where != Where::hosts)
        throw UsageError("--where is for jobs without --offpath, --tunnel and --split-boundary");
    if (settings.offpath != OffPath::balanced &&
        (settings.device_share >= 0.0 || !settings.share_ordinary_steps || !settings.device_ghosts ||
         !settings.device_trials))
        throw UsageError(
            "--device-share, --no-share-ordinary, --no-device-ghosts and --no-device-trials are for "
            "--offpath "
            "balanced");
    if (settings.device != DeviceKind::ranks && !settings.needs_device())
        throw UsageError(
            "--device-kind runtime and openmp are for --offpath; --halo offloaded needs no such flag");
    if (!settings.needs_device() && settings.where != Where::devices &&
        (settings.device_threads > 0 || settings.device_slowness > 1))
        throw UsageError(
            "--device-threads and --device-slowness are for --offpath, --tunnel, --split-boundary and "
            "--where "
            "devices");
}

void check(const Settings& settings) {
    using mpi_support::UsageError;
    check_lanes(settings);
    check_contradictions(settings);
    if (!settings.needs_device()) return;
    const bool by_kernels = settings.offpath != OffPath::none && settings.device != DeviceKind::ranks;
    if (settings.halo != HaloKind::overlapped && !(by_kernels && settings.halo == HaloKind::offloaded))
        throw UsageError(
            "--halo is for hosts alone, but for --halo offloaded beside --offpath with --device-kind "
            "runtime or openmp");
    if ((settings.offpath != OffPath::none ? 1 : 0) + (settings.tunnel ? 1 : 0) +
            (settings.split_boundary ? 1 : 0) >
        1)
        throw UsageError("--offpath, --tunnel and --split-boundary exclude each other");
    if (settings.device != DeviceKind::ranks && (settings.tunnel || settings.split_boundary))
        throw UsageError(
            "--tunnel and --split-boundary need devices that are ranks of the job (--device-kind ranks)");
    if (settings.tunnel) return;
    if (settings.potential == Potential::lj) return;
    if (settings.split_boundary)
        throw UsageError("--split-boundary: forces of EAM (-p eam) cannot be divided by pairs");
}

}  // namespace

int run_program(const CommandLine& command_line) {
    const Settings settings = command_line.settings(MPI_COMM_WORLD);
    check(settings);
    const Places places(settings);
    switch (places.role()) {
        case Places::Role::simulates:
            simulate(settings, places);
            break;
        case Places::Role::serves:
            serve(settings, places);
            break;
        case Places::Role::waits:
            if (places.lanes() != 0) (void)receive_shape(places.root());
            break;
    }
    Places::wait_for_all();
    return 0;
}

}  // namespace minimd
