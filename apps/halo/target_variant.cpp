// --variant target: each step is a target region. In it the device computes the boundary and exchanges it
// with the neighbours' devices by MPI, while the host computes the interior. Host and device then send each
// other the layer of cells that the next step needs.
//
// Where the interior takes less time than starting a region, the device cannot help. So the variant measures
// steps of the host alone as well, and keeps to the faster way.
#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "halo/faster_way.h"
#include "halo/mpi_exchange.h"
#include "halo/target_regions.h"
#include "halo/variant.h"

namespace halo {

namespace {

using mpi_support::UsageError;

#ifdef OPEN_MPI
constexpr const char* kLibrary = "libhalo-target-openmpi.so";
#else
constexpr const char* kLibrary = "libhalo-target-mpich.so";
#endif

struct Regions {
    decltype(&halo_target_check) check = nullptr;
    decltype(&halo_target_enter) enter = nullptr;
    decltype(&halo_target_exit) exit = nullptr;
    decltype(&halo_target_set) set = nullptr;
    decltype(&halo_target_resume) resume = nullptr;
    decltype(&halo_target_leave) leave = nullptr;
    decltype(&halo_target_step) step = nullptr;
    std::string problem =
        "its target regions are not loaded";  // why the regions cannot be used; empty if they can
};

Regions regions;

template <typename Function>
bool find(void* library, const char* symbol, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, symbol));
    return function != nullptr;
}

std::string load() {
    std::error_code ignored;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
    const std::string path = program.parent_path().parent_path() / "lib" / kLibrary;
    if (!std::filesystem::exists(path))
        return "this halo was built without target regions, for which CMake needs clang 16 (" + path +
               " is missing)";
    // The library stays loaded until the process ends, because LLVM's threads stay, too.
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return dlerror();
    const bool all =
        find(library, "halo_target_check", regions.check) &&
        find(library, "halo_target_enter", regions.enter) &&
        find(library, "halo_target_exit", regions.exit) && find(library, "halo_target_set", regions.set) &&
        find(library, "halo_target_resume", regions.resume) &&
        find(library, "halo_target_leave", regions.leave) && find(library, "halo_target_step", regions.step);
    return all ? "" : path + " is not of this halo";
}

std::string problem_of_device() {
    if (!regions.problem.empty()) return regions.problem;
    switch (regions.check()) {
        case 0:
            return {};
        case target::no_device:
            return "no device runs target regions on every node; start the program with offpath run";
        default:
            return "target regions cannot call MPI; start the program with offpath run";
    }
}

class TargetVariant final : public Variant {
  public:
    TargetVariant(const Domain& domain, const Block& block, const std::string& way)
        : Variant(domain, block),
          fields_{std::vector<double>(layout_.numbers()), std::vector<double>(layout_.numbers())},
          inner_(faces()),
          faces_(faces()),
          received_(faces()),
          exchange_(block_, layout_, faces_.data(), received_.data()) {
        if (layout_.sides == 0 || way != "faster")
            faster_.force(layout_.sides != 0 && way == "device" ? Way::device : Way::host);
        place_.layout = layout_;
        for (int dim = 0; dim < 3; ++dim)
            std::copy_n(block_.neighbour[dim].begin(), 2, place_.neighbour[dim]);
        memory_.place = &place_;
        memory_.fields[0] = fields_[0].data();
        memory_.fields[1] = fields_[1].data();
        memory_.inner = inner_.data();
        memory_.faces = faces_.data();
        memory_.received = received_.data();
        memory_.seconds = &seconds_;
        regions.enter(memory_);
    }
    ~TargetVariant() override { regions.exit(memory_); }

    double* field(int which) override { return memory_.fields[which]; }
    void first_values_set() override {
        regions.set(memory_);
        ahead_.reset();
    }
    int steps_before() const override { return faster_.forced() ? 2 : FasterWay::steps_a_look; }

    void step(int from) override {
        if (layout_.sides == 0) return step_interior(from);
        double seconds = 0;
        timed(seconds, [&] {
            if (faster_.way() == Way::device)
                step_with_device(from);
            else
                step_on_host(from);
        });
        faster_.took(seconds);
    }
    Times times() const override {
        Times found = times_;
        found.boundary_s = seconds_ + host_boundary_s_;
        return found;
    }
    nlohmann::json more() const override {
        return {{"way", faster_.way() == Way::device ? "device" : "host"}, {"looks", faster_.looks()}};
    }

  private:
    void step_with_device(int from) {
        Interior interior{*this, from, 0};
        timed(times_.exchange_s, [&] {
            if (ahead_ == Way::host) {
                pack(layout_, Layer::face, field(from), memory_.faces);
                regions.resume(memory_, from);
            }
            pack(layout_, Layer::inner, field(from), memory_.inner);
            regions.step(memory_, from, compute, &interior);
            unpack(layout_, Layer::face, memory_.faces, field(1 - from));
        });
        times_.exchange_s -= interior.seconds;
        ahead_ = Way::device;
    }
    void step_on_host(int from) {
        if (ahead_ == Way::device)
            timed(times_.exchange_s, [&] {
                regions.leave(memory_);
                unpack(layout_, Layer::halo, memory_.received, field(from));
            });
        timed(host_boundary_s_, [&] {
            step_boundary(layout_, field(from), field(1 - from));
            pack(layout_, Layer::face, field(1 - from), memory_.faces);
        });
        step_interior(from);
        timed(times_.exchange_s, [&] {
            exchange_.blocking();
            unpack(layout_, Layer::halo, memory_.received, field(1 - from));
        });
        ahead_ = Way::host;
    }
    struct Interior {
        TargetVariant& variant;
        int from;
        double seconds;
    };
    static void compute(void* context) {
        Interior& interior = *static_cast<Interior*>(context);
        const double before = interior.variant.times_.interior_s;
        interior.variant.step_interior(interior.from);
        interior.seconds = interior.variant.times_.interior_s - before;
    }
    void step_interior(int from) {
        timed(times_.interior_s, [&] { halo::step_interior(layout_, field(from), field(1 - from)); });
    }
    std::size_t faces() const { return std::max<std::size_t>(layout_.face_numbers(), 1); }

    std::array<std::vector<double>, 2> fields_;
    std::vector<double> inner_, faces_, received_;
    double seconds_ = 0;          // time in which the device computed boundaries
    double host_boundary_s_ = 0;  // and the host
    target::Place place_;
    target::Memory memory_;
    FasterWay faster_;
    MpiExchange exchange_;
    std::optional<Way>
        ahead_;  // whose field alone has its boundary and halo after the last step; empty: both
};

}  // namespace

void load_target_regions() {
    regions.problem = load();
}

std::unique_ptr<Variant> make_target(const Domain& domain, const Block& block, const std::string& way) {
    const std::string problem = problem_of_device();
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int first = problem.empty() ? ranks : rank;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first < ranks) {
        std::array<char, 512> text{};
        problem.copy(text.data(), text.size() - 1);
        MPI_Bcast(text.data(), static_cast<int>(text.size()), MPI_CHAR, first, MPI_COMM_WORLD);
        throw UsageError(std::string("--variant target: ") + text.data());
    }
    return std::make_unique<TargetVariant>(domain, block, way);
}

}  // namespace halo
