#include "minimd/offpath/runtime_attachment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>

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

RuntimeAttachment::RuntimeAttachment(MPI_Comm comm, const runtime::Numbers& numbers,
                                     std::initializer_list<const char*> symbols)
    : context_(comm) {
    if (context_.status() != OFFPATH_OK)
        throw mpi_support::UsageError(
            fmt::format("--device-kind runtime: no device answers on every node ({}); start the program with "
                        "offpath run, or with OFFPATH_AUTOSTART=1 in the environment",
                        offpath_status_string(context_.status())));

    const std::string path = library_path();
    offpath_kernel_h check = nullptr;
    offpath_status_t status = offpath_kernel_load(context(), path.c_str(), runtime::check_symbol, &check);
    for (const char* symbol : symbols)
        if (status == OFFPATH_OK)
            status = offpath_kernel_load(context(), path.c_str(), symbol, &kernels_.emplace_back());
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

bool settle(offpath_request_h& request) {
    if (request == nullptr) return true;
    const offpath_status_t status = offpath_request_wait(request);
    offpath_request_free(request);
    request = nullptr;
    return status == OFFPATH_OK;
}

RuntimeMemory::~RuntimeMemory() {
    if (data_ != nullptr) offpath_mem_free(context_, data_);
}

bool RuntimeMemory::reserve(std::size_t bytes) {
    if (data_ != nullptr && bytes <= bytes_) return true;
    if (data_ != nullptr) offpath_mem_free(context_, data_);
    data_ = nullptr;
    bytes_ = std::max<std::size_t>(bytes + bytes / 4, 4096);
    status_ = offpath_mem_alloc(context_, bytes_, &data_);
    return status_ == OFFPATH_OK;
}

bool RuntimeMemory::in_place() const {
    offpath_back_end_t back_end;
    offpath_progress_t progress;
    return offpath_mem_query(context_, data_, bytes_, &back_end, &progress) == OFFPATH_OK &&
           back_end == OFFPATH_BACK_END_MAP;
}

bool RuntimeLists::fill(const std::vector<PairLists>& from) {
    if (!kept()) return false;
    std::size_t rows = 0, blocks = 0;
    for (const PairLists& each : from) {
        rows += each.interior.rows.size() + each.boundary.rows.size();
        blocks += each.interior.blocks.size() + each.boundary.blocks.size();
    }
    row_bytes_ = rows * sizeof(PairRow);
    block_bytes_ = blocks * sizeof(std::int32_t);
    if (from.size() > runtime::most_ranges || blocks > std::numeric_limits<std::int32_t>::max() ||
        !rows_.reserve(row_bytes_) || !blocks_.reserve(block_bytes_))
        return false;
    auto* to_row = static_cast<PairRow*>(rows_.data());
    auto* to_block = static_cast<std::int32_t*>(blocks_.data());
    std::int32_t blocks_before = 0;
    all_rows_ = 0;
    const auto append = [&](const PairList& list) {
        for (PairRow row : list.rows) {
            row.begin += blocks_before;
            row.end += blocks_before;
            *to_row++ = row;
        }
        to_block = std::copy(list.blocks.begin(), list.blocks.end(), to_block);
        all_rows_ += static_cast<std::int32_t>(list.rows.size());
        blocks_before += static_cast<std::int32_t>(list.blocks.size());
    };
    ends_.clear();
    for (const PairLists& each : from) {
        append(each.interior);
        ends_.push_back(all_rows_);
    }
    for (const PairLists& each : from)
        append(each.boundary);
    return true;
}

bool RuntimeLists::send(offpath_kernel_h keep) {
    const offpath_kernel_buffer_t buffers[] = {row_buffer(), block_buffer()};
    return offpath_compute(keep, nullptr, 0, buffers, 2, &keeping_) == OFFPATH_OK;
}

bool RuntimeLists::reserve_as(const RuntimeLists& other) {
    return rows_.reserve(other.row_bytes_) && blocks_.reserve(other.block_bytes_);
}

}  // namespace minimd
