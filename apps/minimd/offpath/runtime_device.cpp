#include "minimd/offpath/runtime_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "support/mpi_program.h"

namespace minimd {

namespace {

// Where it is here; a device with an operating system of its own looks at the same place.
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

RuntimeAttachment::RuntimeAttachment(MPI_Comm comm, const runtime::Numbers& numbers) : context_(comm) {
    if (context_.status() != OFFPATH_OK)
        throw mpi_support::UsageError(
            fmt::format("--device-kind runtime: no device answers on every node ({}); start the program with "
                        "offpath run, or with OFFPATH_AUTOSTART=1 in the environment",
                        offpath_status_string(context_.status())));

    const std::string path = library_path();
    offpath_kernel_h check = nullptr;
    offpath_status_t status = offpath_kernel_load(context(), path.c_str(), runtime::check_symbol, &check);
    if (status == OFFPATH_OK)
        status = offpath_kernel_load(context(), path.c_str(), runtime::lists_symbol, &lists_);
    if (status == OFFPATH_OK)
        status = offpath_kernel_load(context(), path.c_str(), runtime::forces_symbol, &forces_);
    if (status == OFFPATH_OK) status = run_check(check, numbers);
    int worst = status;
    MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_INT, MPI_MIN, comm);
    if (worst == OFFPATH_OK) return;
    throw mpi_support::UsageError(fmt::format(
        "--device-kind runtime: a device cannot run {} for numbers of {} bytes in blocks of {} lanes ({}); "
        "other lanes: --lanes; MINIMD_KERNELS says where devices find the library",
        path, numbers.real_bytes, numbers.lanes,
        offpath_status_string(static_cast<offpath_status_t>(worst))));
}

RuntimeMemory::~RuntimeMemory() {
    if (data_ != nullptr) offpath_mem_free(context_, data_);
}

bool RuntimeMemory::reserve(std::size_t bytes) {
    if (data_ != nullptr && bytes <= bytes_) return true;
    if (data_ != nullptr) offpath_mem_free(context_, data_);
    data_ = nullptr;
    bytes_ = std::max<std::size_t>(bytes + bytes / 4, 4096);
    return offpath_mem_alloc(context_, bytes_, &data_) == OFFPATH_OK;
}

bool RuntimeMemory::in_place() const {
    offpath_back_end_t back_end;
    offpath_progress_t progress;
    return offpath_mem_query(context_, data_, bytes_, &back_end, &progress) == OFFPATH_OK &&
           back_end == OFFPATH_BACK_END_MAP;
}

template <typename Real>
RuntimeDevice<Real>::RuntimeDevice(MPI_Comm comm, const RuntimeSettings& settings)
    : attachment_(comm, {sizeof(Real), settings.lanes}),
      x_(attachment_.context()),
      f_(attachment_.context()),
      answer_(attachment_.context()),
      rows_(attachment_.context()),
      blocks_(attachment_.context()) {
    arguments_.numbers = {sizeof(Real), settings.lanes};
    arguments_.threads = settings.threads;
    arguments_.slowness = settings.slowness;
    arguments_.parameters = settings.parameters;
    lost_ = !answer_.reserve(sizeof(runtime::ForceAnswer));
    in_place_ = !lost_ && answer_.in_place();
}

template <typename Real>
RuntimeDevice<Real>::~RuntimeDevice() {
    settle(keeping_);
    settle(computing_);
}

template <typename Real>
bool RuntimeDevice<Real>::settle(offpath_request_h& request) {
    if (request == nullptr) return true;
    const offpath_status_t status = offpath_request_wait(request);
    offpath_request_free(request);
    request = nullptr;
    return status == OFFPATH_OK;
}

template <typename Real>
void RuntimeDevice<Real>::set_lists(const Particles<Real>&, Neighborhood<Real>& neighborhood) {
    if (lost_ || !settle(keeping_)) {
        lost_ = true;
        return;
    }
    arguments_.both_sides = neighborhood.both_sides(false) ? 1 : 0;
    const std::vector<PairLists>& lists = neighborhood.lists();
    std::size_t rows = 0, blocks = 0;
    for (const PairLists& each : lists) {
        rows += each.interior.rows.size();
        blocks += each.interior.blocks.size();
    }
    row_bytes_ = rows * sizeof(PairRow);
    block_bytes_ = blocks * sizeof(std::int32_t);
    if (lists.size() > runtime::most_ranges || !rows_.reserve(row_bytes_) || !blocks_.reserve(block_bytes_)) {
        lost_ = true;
        return;
    }
    // The lists of all threads become one.
    auto* to_row = static_cast<PairRow*>(rows_.data());
    auto* to_block = static_cast<std::int32_t*>(blocks_.data());
    std::int32_t rows_before = 0, blocks_before = 0;
    list_ends_.clear();
    for (const PairLists& each : lists) {
        for (PairRow row : each.interior.rows) {
            row.begin += blocks_before;
            row.end += blocks_before;
            *to_row++ = row;
        }
        to_block = std::copy(each.interior.blocks.begin(), each.interior.blocks.end(), to_block);
        rows_before += static_cast<std::int32_t>(each.interior.rows.size());
        blocks_before += static_cast<std::int32_t>(each.interior.blocks.size());
        list_ends_.push_back(rows_before);
    }
    if (in_place_) return;
    const offpath_kernel_buffer_t buffers[] = {rows_.buffer(row_bytes_, OFFPATH_IN),
                                               blocks_.buffer(block_bytes_, OFFPATH_IN)};
    lost_ = offpath_compute(attachment_.lists(), nullptr, 0, buffers, 2, &keeping_) != OFFPATH_OK;
}

template <typename Real>
void RuntimeDevice<Real>::start(const Particles<Real>& particles, const Share& share) {
    started_ = Clock::now();
    reals_ = particles.reals(particles.local_slots);
    const std::size_t bytes = reals_ * sizeof(Real);
    if (lost_ || !x_.reserve(bytes) || !f_.reserve(bytes)) {
        lost_ = true;
        return;
    }
    std::memcpy(x_.data(), particles.x.data(), bytes);
    arguments_.energy = share.energy ? 1 : 0;
    arguments_.ranges = 0;
    std::int32_t begin = 0;
    for (std::size_t list = 0; list < list_ends_.size(); ++list) {
        const std::int32_t end = list_ends_[list];
        arguments_.range[arguments_.ranges++] = {std::min(begin + share.first_rows[list], end), end};
        begin = end;
    }
    const offpath_kernel_buffer_t buffers[] = {x_.buffer(bytes, OFFPATH_IN), f_.buffer(bytes, OFFPATH_OUT),
                                               answer_.buffer(sizeof(runtime::ForceAnswer), OFFPATH_OUT),
                                               rows_.buffer(row_bytes_, OFFPATH_IN),
                                               blocks_.buffer(block_bytes_, OFFPATH_IN)};
    lost_ = offpath_compute(attachment_.forces(), &arguments_, arguments_.bytes(), buffers, in_place_ ? 5 : 3,
                            &computing_) != OFFPATH_OK;
}

template <typename Real>
std::optional<typename Device<Real>::Outcome> RuntimeDevice<Real>::finish() {
    if (lost_) return std::nullopt;
    const bool waited = offpath_request_test(computing_) == OFFPATH_IN_PROGRESS;
    if (!settle(computing_)) {
        lost_ = true;
        return std::nullopt;
    }
    const double elapsed = std::chrono::duration<double>(Clock::now() - started_).count();
    runtime::ForceAnswer answer;
    std::memcpy(&answer, answer_.data(), sizeof answer);
    // When it was done is known only if somebody waited for it.
    if (waited) overhead_ = std::max(0.0, elapsed - answer.seconds);
    typename Device<Real>::Outcome outcome;
    // Pairs that are listed from both of their atoms count half.
    const double weight = arguments_.both_sides != 0 ? 1.0 : 0.5;
    outcome.sum = {weight * answer.sum.energy, weight * answer.sum.virial};
    outcome.seconds = answer.seconds;
    outcome.busy = answer.seconds + overhead_;
    outcome.forces = {static_cast<const Real*>(f_.data()), reals_};
    return outcome;
}

template class RuntimeDevice<float>;
template class RuntimeDevice<double>;

}  // namespace minimd
