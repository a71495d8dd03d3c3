// --variant target: each step is a target region. In it the device computes the boundary and exchanges it
// with the neighbours' devices by MPI, while the host computes the interior. Host and device then send each
// other the layer of cells that the next step needs.
#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <filesystem>
#include <vector>

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
    const bool all = find(library, "halo_target_check", regions.check) &&
                     find(library, "halo_target_enter", regions.enter) &&
                     find(library, "halo_target_exit", regions.exit) &&
                     find(library, "halo_target_set", regions.set) &&
                     find(library, "halo_target_step", regions.step);
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
    TargetVariant(const Domain& domain, const Block& block)
        : Variant(domain, block),
          fields_{std::vector<double>(layout_.numbers()), std::vector<double>(layout_.numbers())},
          inner_(faces()),
          faces_(faces()),
          received_(faces()) {
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
    void first_values_set() override { regions.set(memory_); }

    void step(int from) override {
        Interior interior{*this, field(from), field(1 - from), 0};
        if (layout_.sides == 0) return compute(&interior);
        timed(times_.exchange_s, [&] {
            pack(layout_, Layer::inner, interior.old, memory_.inner);
            regions.step(memory_, from, compute, &interior);
            unpack(layout_, Layer::face, memory_.faces, interior.next);
        });
        times_.exchange_s -= interior.seconds;
    }
    Times times() const override {
        Times found = times_;
        found.boundary_s = seconds_;
        return found;
    }

  private:
    struct Interior {
        TargetVariant& variant;
        const double* old;
        double* next;
        double seconds;
    };
    static void compute(void* context) {
        Interior& interior = *static_cast<Interior*>(context);
        timed(interior.seconds,
              [&] { step_interior(interior.variant.layout_, interior.old, interior.next); });
        interior.variant.times_.interior_s += interior.seconds;
    }
    std::size_t faces() const { return std::max<std::size_t>(layout_.face_numbers(), 1); }

    std::array<std::vector<double>, 2> fields_;
    std::vector<double> inner_, faces_, received_;
    double seconds_ = 0;  // time in which the device computed boundaries
    target::Place place_;
    target::Memory memory_;
};

}  // namespace

void load_target_regions() {
    regions.problem = load();
}

std::unique_ptr<Variant> make_target(const Domain& domain, const Block& block) {
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
    return std::make_unique<TargetVariant>(domain, block);
}

}  // namespace halo
