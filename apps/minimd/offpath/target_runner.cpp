#include "minimd/offpath/target_runner.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "support/mpi_program.h"

namespace minimd {

namespace {

constexpr std::size_t alignment = 128;
// The front end gives memory that devices can map from this size on.
constexpr std::size_t least_shared_bytes = 64 << 10;

// The names are in the order of Kernel.
constexpr const char* symbols[kernel_count] = {"minimd_target_lists", "minimd_target_forces",
                                               "minimd_target_eam_table", "minimd_target_eam_densities",
                                               "minimd_target_eam_forces"};

// The library lies next to the program's folder, both in the build and when installed.
std::string library_path() {
    std::error_code ignored;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
    return program.parent_path().parent_path() / "lib" / target::library_name;
}

template <typename Function>
bool find(void* library, const char* symbol, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, symbol));
    return function != nullptr;
}

}  // namespace

TargetRunner::TargetRunner(MPI_Comm comm, const runtime::Numbers& numbers) {
    const std::string problem = load(numbers);
    int rank = 0, ranks = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    int first = problem.empty() ? ranks : rank;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, comm);
    if (first < ranks) {
        std::array<char, 512> text{};
        problem.copy(text.data(), text.size() - 1);
        MPI_Bcast(text.data(), static_cast<int>(text.size()), MPI_CHAR, first, comm);
        throw mpi_support::UsageError(fmt::format("--device-kind openmp: {}", text.data()));
    }
    thread_ = std::thread([this] { work(); });
}

TargetRunner::~TargetRunner() {
    {
        std::lock_guard lock(mutex_);
        over_ = true;
    }
    more_.notify_one();
    thread_.join();
    for (const auto& [data, allocation] : memory_) {
        exit_(data, allocation.bytes);
        MPI_Free_mem(allocation.begin);
    }
}

std::string TargetRunner::load(const runtime::Numbers& numbers) {
    const std::string path = library_path();
    if (!std::filesystem::exists(path))
        return fmt::format(
            "this minimd was built without target regions, for which CMake needs clang 16 "
            "({} is missing)",
            path);
    // The library stays loaded until the process ends, as do the threads of LLVM's libraries.
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return dlerror();
    decltype(&minimd_target_check) check = nullptr;
    bool all = find(library, "minimd_target_check", check) && find(library, "minimd_target_enter", enter_) &&
               find(library, "minimd_target_exit", exit_);
    for (std::size_t kernel = 0; kernel < kernel_count && all; ++kernel)
        all = find(library, symbols[kernel], regions_[kernel]);
    if (!all) return fmt::format("{} is not of this minimd", path);
    switch (check(numbers.real_bytes, numbers.lanes)) {
        case OFFPATH_OK:
            return {};
        case target::no_device:
            return "no device runs target regions on every node; start the program with offpath run";
        default:
            return fmt::format(
                "a device has no kernels for numbers of {} bytes in blocks of {} lanes; other "
                "lanes: --lanes",
                numbers.real_bytes, numbers.lanes);
    }
}

offpath_status_t TargetRunner::allocate(std::size_t bytes, void** data) {
    Allocation made{nullptr, bytes};
    std::size_t room = std::max(bytes + alignment, least_shared_bytes);
    if (MPI_Alloc_mem(static_cast<MPI_Aint>(room), MPI_INFO_NULL, &made.begin) != MPI_SUCCESS)
        return OFFPATH_ERR_MEMORY;
    *data = made.begin;
    std::align(alignment, bytes, *data, room);
    enter_(*data, bytes);
    memory_[*data] = made;
    return OFFPATH_OK;
}

void TargetRunner::release(void* data) {
    const auto at = memory_.find(data);
    exit_(data, at->second.bytes);
    MPI_Free_mem(at->second.begin);
    memory_.erase(at);
}

bool TargetRunner::start(Kernel kernel, const void* arguments, std::size_t bytes,
                         std::span<const offpath_kernel_buffer_t> buffers, Ticket& ticket) {
    const auto* const first = static_cast<const std::byte*>(arguments);
    Job job{regions_[static_cast<std::size_t>(kernel)], {first, first + bytes}, {}};
    for (const offpath_kernel_buffer_t& buffer : buffers) {
        target::Operands& all = job.operands;
        target::Bytes& place = buffer.access == OFFPATH_IN
                                   ? (all.in.data == nullptr ? all.in : all.more_in)
                                   : (all.answer.data == nullptr ? all.answer : all.out);
        place = {buffer.address, buffer.bytes};
    }
    {
        std::lock_guard lock(mutex_);
        jobs_.push_back(std::move(job));
        ticket = ++started_;
    }
    more_.notify_one();
    return true;
}

void TargetRunner::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        more_.wait(lock, [&] { return over_ || !jobs_.empty(); });
        if (jobs_.empty()) return;
        Job job = std::move(jobs_.front());
        jobs_.pop_front();
        lock.unlock();
        job.operands.arguments = {job.arguments.data(), job.arguments.size()};
        const int status = job.region(job.operands);
        lock.lock();
        ++ended_;
        if (status != OFFPATH_OK) failed_.push_back(ended_);
        done_.notify_one();
    }
}

bool TargetRunner::running(Ticket ticket) {
    std::lock_guard lock(mutex_);
    return ticket > ended_;
}

bool TargetRunner::settle(Ticket& ticket) {
    if (ticket == 0) return true;
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return ended_ >= ticket; });
    const bool failed = std::find(failed_.begin(), failed_.end(), ticket) != failed_.end();
    ticket = 0;
    return !failed;
}

}  // namespace minimd
