// Forces of a device that is reached through the runtime, compared with those of the host's own kernels. The
// tests use a real daemon, which shares this system's memory or behaves like one on another system. In some
// tests the daemon dies at some moment.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <tuple>

#include "engine.h"
#include "minimd/dynamics/eam_forces.h"
#include "minimd/offpath/eam_kernel_device.h"
#include "minimd/offpath/eam_offload.h"
#include "minimd/offpath/kernel_device.h"
#include "minimd/offpath/runtime_runner.h"
#include "support/mpi_program.h"
#include "systems.h"

extern char** environ;

namespace minimd {
namespace {

namespace fs = std::filesystem;

// One daemon for all ranks. Rank 0 starts it, and every rank's environment names it. Collective.
class Daemon {
  public:
    explicit Daemon(bool remote, const std::string& option = {}) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        char name[] = "/tmp/offpath-test-XXXXXX";
        if (rank_ == 0 && mkdtemp(name) == nullptr) ADD_FAILURE() << "no directory";
        MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
        directory_ = name;
        int port = 0;
        if (rank_ == 0) {
            start(option);
            port = wait_for_port();
            EXPECT_GT(port, 0) << "offpathd does not start";
        }
        MPI_Bcast(&port, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (remote) {
            setenv("OFFPATH_DEVICES", ("127.0.0.1:" + std::to_string(port)).c_str(), 1);
            setenv("OFFPATH_KEY_FILE", (directory_ + "/key").c_str(), 1);
        } else {
            setenv("OFFPATH_DIR", directory_.c_str(), 1);
        }
    }
    ~Daemon() {
        MPI_Barrier(MPI_COMM_WORLD);
        end();
        for (const char* variable : {"OFFPATH_DEVICES", "OFFPATH_KEY_FILE", "OFFPATH_DIR"})
            unsetenv(variable);
        std::error_code ignored;
        if (rank_ == 0) fs::remove_all(directory_, ignored);
    }
    Daemon(const Daemon&) = delete;
    Daemon& operator=(const Daemon&) = delete;

    // Kills the daemon, on rank 0.
    void end() {
        if (pid_ <= 0) return;
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }

  private:
    void start(const std::string& option) {
        const std::string key = directory_ + "/key", log = directory_ + "/log";
        std::ofstream(key) << std::string(40, 'k') << rank_;
        fs::permissions(key, fs::perms::owner_read | fs::perms::owner_write);
        // The key goes through a pipe, so that kernels may run as the user who started the daemon.
        int ends[2];
        EXPECT_EQ(pipe(ends), 0);
        const std::string text = std::string(40, 'k') + std::to_string(rank_);
        EXPECT_EQ(write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
        close(ends[1]);
        std::vector<std::string> words{OFFPATHD,
                                       "--dir",
                                       directory_,
                                       "--listen",
                                       "127.0.0.1:0",
                                       "--key-fd",
                                       std::to_string(ends[0]),
                                       "--log-file",
                                       log,
                                       "--allow-kernels",
                                       "/"};
        if (!option.empty()) words.push_back(option);
        std::vector<char*> arguments;
        for (std::string& word : words)
            arguments.push_back(word.data());
        arguments.push_back(nullptr);
        EXPECT_EQ(posix_spawn(&pid_, OFFPATHD, nullptr, nullptr, arguments.data(), environ), 0);
        close(ends[0]);
    }
    int wait_for_port() const {
        for (int i = 0; i < 2000; ++i, std::this_thread::sleep_for(std::chrono::milliseconds(5)))
            for (const auto& entry : fs::directory_iterator(directory_)) {
                int port = 0;
                if (entry.path().extension() == ".port" && std::ifstream(entry.path()) >> port && port > 0)
                    return port;
            }
        return 0;
    }

    int rank_ = 0;
    pid_t pid_ = -1;
    std::string directory_;
};

template <typename Real>
std::unique_ptr<KernelRunner> runner_for(int lanes) {
    return std::make_unique<RuntimeRunner>(MPI_COMM_WORLD, runtime::Numbers{sizeof(Real), lanes});
}

template <typename Real>
struct Computed {
    AlignedVector<Real> f;
    EnergyVirial sum;
};

// Chooses the interior rows before first[t], or those from there on, or the rows that need ghosts.
enum class Rows { before, after, boundary };
template <typename Real>
Computed<Real> by_host(Engine<Real>& engine, const LjParameters& parameters,
                       const std::vector<std::int32_t>& first, Rows which) {
    const bool both_sides = engine.neighborhood.both_sides(which == Rows::boundary);
    Computed<Real> forces;
    const std::size_t reals = engine.particles.reals(engine.particles.slots);
    forces.f.resize(reals);
    std::fill(forces.f.begin(), forces.f.end(), Real{0});
    for (std::size_t t = 0; t < engine.neighborhood.lists().size(); ++t) {
        const PairLists& lists = engine.neighborhood.lists()[t];
        const PairList& list = lists.interior;
        const auto at = static_cast<std::size_t>(first[t]);
        const PairRows rows = which == Rows::boundary ? lists.boundary.view()
                              : which == Rows::before ? list.view(0, at)
                                                      : list.view(at, list.rows.size() - at);
        forces.sum += engine.kernel.lennard_jones(engine.particles.x.data(), forces.f.data(), rows,
                                                  parameters, {true, both_sides});
    }
    if (!both_sides) forces.sum = {0.5 * forces.sum.energy, 0.5 * forces.sum.virial};
    return forces;
}

template <typename Real>
void add(Computed<Real>& to, const Computed<Real>& more) {
    for (std::size_t i = 0; i < to.f.size(); ++i)
        to.f[i] += more.f[i];
    to.sum += more.sum;
}

template <typename Real>
void expect_same(const Computed<Real>& got, const Computed<Real>& wanted, double tolerance) {
    double largest = 1;
    for (const Real f : wanted.f)
        largest = std::max(largest, std::abs(static_cast<double>(f)));
    ASSERT_EQ(got.f.size(), wanted.f.size());
    for (std::size_t i = 0; i < got.f.size(); ++i)
        ASSERT_NEAR(got.f[i], wanted.f[i], tolerance * largest) << i;
    EXPECT_NEAR(got.sum.energy, wanted.sum.energy, tolerance * std::abs(wanted.sum.energy) + tolerance);
    EXPECT_NEAR(got.sum.virial, wanted.sum.virial, tolerance * std::abs(wanted.sum.virial) + tolerance);
}

struct Way {
    int threads, device_threads, slowness;
    bool ghost_newton = true;
};

const Vec3 box{9.1, 8.3, 7.7};

template <typename Real>
void check_shares(const Way& way, double tolerance) {
    Settings settings;
    settings.threads = way.threads;
    settings.ghost_newton = way.ghost_newton;
    const LjParameters parameters{2.5, 0.9, 1.02, 1};
    Engine<Real> engine(settings, box, jittered(box, 1.05, 0.12));
    KernelDevice<Real> device(runner_for<Real>(engine.kernel.lanes),
                              {engine.kernel.lanes, way.device_threads, way.slowness, parameters});
    Particles<Real>& p = engine.particles;
    for (int round = 0; round < 3; ++round) {
        engine.rebuild(round);
        device.set_lists(p, engine.neighborhood);
        for (const double part : {1.0, 0.4, 0.0})
            for (const bool boundary : {false, true}) {
                std::vector<std::int32_t> first;
                for (const PairLists& list : engine.neighborhood.lists())
                    first.push_back(static_cast<std::int32_t>(
                        (1 - part) * static_cast<double>(list.interior.rows.size())));
                device.start(p, {first, boundary, true});
                Computed<Real> wanted = by_host(engine, parameters, first, Rows::after);
                if (boundary) add(wanted, by_host(engine, parameters, first, Rows::boundary));
                if (boundary) device.take_ghosts(p);
                // Sets the lists of the next share, which are the same.
                if (boundary) device.set_lists(p, engine.neighborhood);
                Computed<Real> got;
                got.f.resize(p.reals(p.slots));
                std::fill(got.f.begin(), got.f.end(), Real{0});
                if (boundary) {
                    const Real* ghosts = device.ghost_forces(false);
                    if (ghosts == nullptr) ghosts = device.ghost_forces(true);
                    ASSERT_NE(ghosts, nullptr);
                    std::copy(ghosts + p.reals(p.local_slots), ghosts + p.reals(p.slots),
                              got.f.begin() + static_cast<std::ptrdiff_t>(p.reals(p.local_slots)));
                }
                const auto outcome = device.finish();
                ASSERT_TRUE(outcome);
                ASSERT_EQ(outcome->first + outcome->forces.size(), p.reals(p.local_slots));
                EXPECT_TRUE(outcome->first == 0 || !boundary);
                EXPECT_TRUE(outcome->first > 0 || boundary || part == 1.0 || way.threads > 1);
                std::copy(outcome->forces.begin(), outcome->forces.end(),
                          got.f.begin() + static_cast<std::ptrdiff_t>(outcome->first));
                EXPECT_GE(outcome->busy, outcome->seconds);
                EXPECT_GT(outcome->seconds, 0);
                got.sum = outcome->sum;
                expect_same(got, wanted, tolerance);
                if (testing::Test::HasFatalFailure()) return;
                // The next share has the same lists, but other positions.
                for (std::size_t i = 0; i < p.reals(p.slots); i += 5)
                    p.x[i] += Real(0.003);
            }
    }
}

class RuntimeDevices : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(LocalAndRemote, RuntimeDevices, testing::Bool());

TEST_P(RuntimeDevices, GiveTheHostsForces) {
    Daemon daemon(GetParam());
    for (const Way& way : {Way{1, 1, 1}, Way{2, 1, 1}, Way{1, 2, 1, false}, Way{2, 3, 2}}) {
        SCOPED_TRACE(testing::Message() << way.threads << " threads, " << way.device_threads
                                        << " on the device, " << way.slowness << " times");
        check_shares<double>(way, 1e-12);
        check_shares<float>(way, 1e-5);
        if (HasFatalFailure()) return;
    }
}

// The daemon dies before a share is started, or before it is finished. finish() reports the loss, and so do
// all later calls.
TEST_P(RuntimeDevices, SayWhenTheyAreLost) {
    for (const bool while_computing : {false, true}) {
        Daemon daemon(GetParam());
        const LjParameters parameters{2.5, 1.0, 1.0, 1};
        Engine<double> engine(Settings{}, box, jittered(box, 1.05, 0.12));
        KernelDevice<double> device(runner_for<double>(engine.kernel.lanes),
                                    {engine.kernel.lanes, 1, while_computing ? 1000000 : 1, parameters});
        engine.rebuild();
        device.set_lists(engine.particles, engine.neighborhood);
        const Share all{std::vector<std::int32_t>(1, 0), true, true};
        if (while_computing) {
            device.start(engine.particles, all);
            device.take_ghosts(engine.particles);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        daemon.end();
        MPI_Barrier(MPI_COMM_WORLD);
        if (!while_computing) {
            device.start(engine.particles, all);
            device.take_ghosts(engine.particles);
        }
        EXPECT_EQ(device.ghost_forces(true), nullptr);
        EXPECT_FALSE(device.finish());
        device.set_lists(engine.particles, engine.neighborhood);
        device.start(engine.particles, all);
        device.take_ghosts(engine.particles);
        EXPECT_EQ(device.ghost_forces(false), nullptr);
        EXPECT_FALSE(device.finish());
    }
}

// Forces of EAM by a device and by the hosts alone, for the same positions in one step.
template <typename Real>
class EamStep {
  public:
    explicit EamStep(const Way& way, const Settings& settings)
        : tables(smooth_tables()),
          engine(settings, eam_box, jittered(eam_box, 1.0, 0.1)),
          forces(engine.settings, engine.kernel, tables),
          offload(forces),
          device(runner_for<Real>(engine.kernel.lanes),
                 {engine.kernel.lanes, way.device_threads, way.slowness, {}},
                 EamPairTable<Real>(tables).table()) {}

    // The device's share: the last rows of each list, `part` of the interior ones, and all rows that need
    // ghosts.
    void start(bool energy, double part = 1.0, bool boundary = true) {
        first.clear();
        for (const PairLists& list : engine.neighborhood.lists())
            first.push_back(static_cast<std::int32_t>(
                std::lround((1 - part) * static_cast<double>(list.interior.rows.size()))));
        with_boundary = boundary;
        device.start(engine.particles, {first, boundary, energy});
        if (boundary) device.take_ghosts(engine.particles);
    }
    Computed<Real> finish(Device<Real>* by, bool energy, bool lost) {
        const Particles<Real>& p = engine.particles;
        Computed<Real> got;
        offload.exchange({p.x.data(), p.layout, p.local_slots, p.slots, &engine.neighborhood,
                          &engine.neighborhood.lists(), &engine.neighborhood.halo(), first, with_boundary},
                         by, energy, engine.times);
        const auto result = offload.finish(by, got.f, engine.times);
        EXPECT_EQ(!result.outcome, lost);
        got.f.resize(p.reals(p.local_slots));
        for (std::size_t i = 0; result.outcome && i < result.outcome->forces.size(); ++i)
            got.f[result.outcome->first + i] += result.outcome->forces[i];
        EXPECT_TRUE(!result.outcome || result.outcome->busy >= result.outcome->seconds);
        got.sum = result.sum;
        return got;
    }
    Computed<Real> by_hosts() {
        Computed<Real> wanted;
        wanted.sum = forces.compute(engine.particles, engine.neighborhood, false, true, engine.times);
        wanted.f.assign(engine.particles.f.begin(),
                        engine.particles.f.begin() + static_cast<std::ptrdiff_t>(engine.particles.reals(
                                                         engine.particles.local_slots)));
        return wanted;
    }

    static constexpr Vec3 eam_box{9.1, 8.3, 7.7};
    const EamTables tables;
    Engine<Real> engine;
    EamForces<Real> forces;
    EamOffload<Real> offload;
    EamKernelDevice<Real> device;
    std::vector<std::int32_t> first;
    bool with_boundary = true;
};

template <typename Real>
void check_eam(const Way& way, bool full, double tolerance) {
    Settings settings;
    settings.threads = way.threads;
    settings.ghost_newton = way.ghost_newton;
    settings.half_neigh = full ? 0 : 1;
    EamStep<Real> step(way, settings);
    Particles<Real>& p = step.engine.particles;
    for (int round = 0; round < 2; ++round) {
        step.engine.rebuild(round);
        step.device.set_lists(p, step.engine.neighborhood);
        const auto check = [&](bool energy, double part, bool boundary) {
            SCOPED_TRACE(testing::Message() << "round " << round << ", " << part << " of the interior, "
                                            << (boundary ? "and" : "not") << " what needs ghosts");
            const Computed<Real> wanted = step.by_hosts();
            step.start(energy, part, boundary);
            Computed<Real> got = step.finish(&step.device, energy, false);
            if (!energy) got.sum = wanted.sum;
            expect_same(got, wanted, tolerance);
        };
        for (const auto& [energy, part, boundary] :
             {std::tuple{true, 1.0, true}, std::tuple{false, 1.0, true}, std::tuple{true, 0.4, true},
              std::tuple{true, 0.4, false}, std::tuple{false, 1.0, false}, std::tuple{true, 0.0, false}}) {
            check(energy, part, boundary);
            if (testing::Test::HasFatalFailure()) return;
            // The next step has the same lists, but other positions; by_hosts() updates their ghosts.
            for (std::size_t i = 0; i < p.reals(p.local_slots); i += 5)
                p.x[i] += Real(0.003);
        }
    }
}

TEST_P(RuntimeDevices, GiveTheHostsForcesOfEam) {
    Daemon daemon(GetParam());
    for (const Way& way : {Way{1, 1, 1}, Way{2, 1, 1}, Way{1, 2, 1, false}, Way{2, 3, 2}})
        for (const bool full : {false, true}) {
            SCOPED_TRACE(testing::Message()
                         << way.threads << " threads, " << way.device_threads << " on the device, "
                         << way.slowness << " times, " << (full ? "full lists" : "half lists"));
            check_eam<double>(way, full, 1e-11);
            check_eam<float>(way, full, 2e-4);
            if (HasFatalFailure()) return;
        }
}

// A device that is lost after it has given densities, or before.
class Mortal final : public Device<double> {
  public:
    Mortal(EamKernelDevice<double>& device, Daemon& daemon, bool early)
        : device_(device), daemon_(daemon), early_(early) {}

    GhostMover ghost_mover() const override { return device_.ghost_mover(); }
    std::int32_t first_slot() const override { return device_.first_slot(); }
    void set_lists(const Particles<double>& particles, Neighborhood<double>& neighborhood) override {
        device_.set_lists(particles, neighborhood);
    }
    void start(const Particles<double>& particles, const Share& share) override {
        device_.start(particles, share);
    }
    const double* densities() override {
        if (early_) die();
        return device_.densities();
    }
    void take_derivatives(std::span<const double> derivatives) override {
        if (!early_) die();
        device_.take_derivatives(derivatives);
    }
    const double* ghost_forces(bool wait) override { return device_.ghost_forces(wait); }
    std::optional<Outcome> finish() override { return device_.finish(); }

  private:
    void die() {
        MPI_Barrier(MPI_COMM_WORLD);
        daemon_.end();
        MPI_Barrier(MPI_COMM_WORLD);
    }

    EamKernelDevice<double>& device_;
    Daemon& daemon_;
    bool early_;
};

TEST_P(RuntimeDevices, LeaveAStepOfEamToTheHostsWhenTheyAreLost) {
    for (const auto& [early, shared_with_boundary] : {std::tuple{true, true}, std::tuple{false, true},
                                                      std::tuple{true, false}, std::tuple{false, false}}) {
        Daemon daemon(GetParam());
        EamStep<double> step({1, 1, early ? 1000 : 1}, Settings{});
        step.engine.rebuild();
        step.device.set_lists(step.engine.particles, step.engine.neighborhood);
        const Computed<double> wanted = step.by_hosts();
        step.start(true, 0.6, shared_with_boundary);
        Mortal mortal(step.device, daemon, early);
        expect_same(step.finish(&mortal, true, true), wanted, 1e-12);
        // The device does not help in the next step either, nor with a share without ghosts.
        step.device.set_lists(step.engine.particles, step.engine.neighborhood);
        step.start(true);
        expect_same(step.finish(&step.device, true, true), wanted, 1e-12);
        step.start(true, 0.5, false);
        expect_same(step.finish(&step.device, true, true), wanted, 1e-12);
        expect_same(step.finish(nullptr, true, true), wanted, 1e-12);
    }
}

TEST(RuntimeDevice, IsAskedForInVain) {
    const int lanes = kernels<double>().lanes;
    {
        Daemon daemon(false, "--no-kernels");
        EXPECT_THROW(runner_for<double>(lanes), mpi_support::UsageError);
    }
    setenv("OFFPATH_DIR", "/tmp/offpath-test-no-daemon-here", 1);
    EXPECT_THROW(runner_for<double>(lanes), mpi_support::UsageError);
    unsetenv("OFFPATH_DIR");
    Daemon daemon(false);
    setenv("MINIMD_KERNELS", "/no/such/library.so", 1);
    EXPECT_THROW(runner_for<double>(lanes), mpi_support::UsageError);
    unsetenv("MINIMD_KERNELS");
    EXPECT_THROW(runner_for<double>(3), mpi_support::UsageError);
    EXPECT_NO_THROW(runner_for<double>(lanes));
}

}  // namespace
}  // namespace minimd
