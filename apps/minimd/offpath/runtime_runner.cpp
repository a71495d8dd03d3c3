#include "minimd/offpath/runtime_runner.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "minimd/offpath/runtime_eam_kernels.h"
#include "support/mpi_program.h"

namespace minimd {

namespace {

// The names are in the order of Kernel.
constexpr const char* symbols[kernel_count] = {runtime::lists_symbol, runtime::forces_symbol,
                                               runtime::eam_table_symbol, runtime::eam_densities_symbol,
                                               runtime::eam_forces_symbol};

// Returns the library's path here. A device with an operating system of its own looks in the same place.
std::string library_path() {
    if (const char* path = std::getenv("MINIMD_KERNELS"); path != nullptr && *path != '\0') return path;
    std::error_code ignored;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
    return program.parent_path().parent_path() / "lib" / runtime::library_name;
}

offpath_status_t run_check(offpath_kernel_h check, const runtime::Numbers& numbers) {
    offpath_request_h request = nullptr;
    offpath_status_t status = offpath_compute(check, &numbers, sizeof numbers, nullptr, 0, &request);
    if (status != OFFPATH_OK) return status;
    status = offpath_request_wait(request);
    offpath_request_free(request);
    return status;
}

}  // namespace

RuntimeRunner::RuntimeRunner(MPI_Comm comm, const runtime::Numbers& numbers) : context_(comm) {
    if (context_.status() != OFFPATH_OK)
        throw mpi_support::UsageError(
            fmt::format("--device-kind runtime: no device answers on every node ({}); start the program with "
                        "offpath run, or with OFFPATH_AUTOSTART=1 in the environment",
                        offpath_status_string(context_.status())));

    const std::string path = library_path();
    offpath_kernel_h check = nullptr;
    offpath_status_t status =
        offpath_kernel_load(context_.handle(), path.c_str(), runtime::check_symbol, &check);
    for (std::size_t kernel = 0; kernel < kernel_count && status == OFFPATH_OK; ++kernel)
        status = offpath_kernel_load(context_.handle(), path.c_str(), symbols[kernel], &kernels_[kernel]);
    if (status == OFFPATH_OK) status = run_check(check, numbers);
    int worst = status;
    MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_INT, MPI_MIN, comm);
    if (worst != OFFPATH_OK)
        throw mpi_support::UsageError(fmt::format(
            "--device-kind runtime: a device cannot run {} for numbers of {} bytes in blocks of {} lanes "
            "({}); other lanes: --lanes; MINIMD_KERNELS says where devices find the library",
            path, numbers.real_bytes, numbers.lanes,
            offpath_status_string(static_cast<offpath_status_t>(worst))));
    in_place_ = maps_memory();
}

bool RuntimeRunner::maps_memory() {
    void* probe = nullptr;
    constexpr std::size_t bytes = 4096;
    if (allocate(bytes, &probe) != OFFPATH_OK) return false;
    offpath_back_end_t back_end;
    offpath_progress_t progress;
    const bool maps =
        offpath_mem_query(context_.handle(), probe, bytes, &back_end, &progress) == OFFPATH_OK &&
        back_end == OFFPATH_BACK_END_MAP;
    release(probe);
    return maps;
}

bool RuntimeRunner::start(Kernel kernel, const void* arguments, std::size_t bytes,
                          std::span<const offpath_kernel_buffer_t> buffers, Ticket& ticket) {
    offpath_request_h request = nullptr;
    if (offpath_compute(kernels_[static_cast<std::size_t>(kernel)], arguments, bytes, buffers.data(),
                        buffers.size(), &request) != OFFPATH_OK)
        return false;
    ticket = reinterpret_cast<Ticket>(request);
    return true;
}

bool RuntimeRunner::running(Ticket ticket) {
    return ticket != 0 &&
           offpath_request_test(reinterpret_cast<offpath_request_h>(ticket)) == OFFPATH_IN_PROGRESS;
}

bool RuntimeRunner::settle(Ticket& ticket) {
    if (ticket == 0) return true;
    const auto request = reinterpret_cast<offpath_request_h>(ticket);
    const offpath_status_t status = offpath_request_wait(request);
    offpath_request_free(request);
    ticket = 0;
    return status == OFFPATH_OK;
}

}  // namespace minimd
