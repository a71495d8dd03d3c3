#include "minimd/offpath/runtime_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>

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
    status_ = offpath_mem_alloc(context_, bytes_, &data_);
    return status_ == OFFPATH_OK;
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
      answers_(attachment_.context()),
      lists_{Lists(attachment_.context()), Lists(attachment_.context())} {
    arguments_.numbers = {sizeof(Real), settings.lanes};
    arguments_.threads = settings.threads;
    arguments_.slowness = settings.slowness;
    arguments_.parameters = settings.parameters;
    lost_ = !answers_.reserve(parts_.size() * sizeof(runtime::ForceAnswer));
    in_place_ = !lost_ && answers_.in_place();
}

template <typename Real>
RuntimeDevice<Real>::~RuntimeDevice() {
    for (Lists& lists : lists_)
        settle(lists.keeping);
    for (offpath_request_h& part : parts_)
        settle(part);
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
bool RuntimeDevice<Real>::fill(Lists& lists, const std::vector<PairLists>& from) {
    std::size_t rows = 0, blocks = 0;
    for (const PairLists& each : from) {
        rows += each.interior.rows.size() + each.boundary.rows.size();
        blocks += each.interior.blocks.size() + each.boundary.blocks.size();
    }
    lists.row_bytes = rows * sizeof(PairRow);
    lists.block_bytes = blocks * sizeof(std::int32_t);
    if (from.size() > runtime::most_ranges || blocks > std::numeric_limits<std::int32_t>::max() ||
        !lists.rows.reserve(lists.row_bytes) || !lists.blocks.reserve(lists.block_bytes))
        return false;
    auto* to_row = static_cast<PairRow*>(lists.rows.data());
    auto* to_block = static_cast<std::int32_t*>(lists.blocks.data());
    std::int32_t blocks_before = 0;
    lists.all_rows = 0;
    const auto append = [&](const PairList& list) {
        for (PairRow row : list.rows) {
            row.begin += blocks_before;
            row.end += blocks_before;
            *to_row++ = row;
        }
        to_block = std::copy(list.blocks.begin(), list.blocks.end(), to_block);
        lists.all_rows += static_cast<std::int32_t>(list.rows.size());
        blocks_before += static_cast<std::int32_t>(list.blocks.size());
    };
    lists.ends.clear();
    for (const PairLists& each : from) {
        append(each.interior);
        lists.ends.push_back(lists.all_rows);
    }
    for (const PairLists& each : from)
        append(each.boundary);
    return true;
}

template <typename Real>
void RuntimeDevice<Real>::set_lists(const Particles<Real>& particles, Neighborhood<Real>& neighborhood) {
    Lists& lists = lists_[1 - latest_];
    if (lost_ || !settle(lists.keeping) || !fill(lists, neighborhood.lists())) {
        lost_ = true;
        return;
    }
    // What is allocated later asks the device in the middle of a step.
    Lists& next = lists_[latest_];
    const std::size_t bytes = particles.reals(particles.slots) * sizeof(Real);
    if (next.rows.data() == nullptr &&
        (!next.rows.reserve(lists.row_bytes) || !next.blocks.reserve(lists.block_bytes) ||
         !x_.reserve(bytes) || !f_.reserve(bytes))) {
        lost_ = true;
        return;
    }
    latest_ = 1 - latest_;
    interior_both_sides_ = neighborhood.both_sides(false);
    boundary_both_sides_ = neighborhood.both_sides(true);
    if (in_place_) return;
    const offpath_kernel_buffer_t buffers[] = {lists.rows.buffer(lists.row_bytes, OFFPATH_IN),
                                               lists.blocks.buffer(lists.block_bytes, OFFPATH_IN)};
    lost_ = offpath_compute(attachment_.lists(), nullptr, 0, buffers, 2, &lists.keeping) != OFFPATH_OK;
}

template <typename Real>
void RuntimeDevice<Real>::launch(runtime::Part part, bool both_sides) {
    using runtime::Part;
    const std::size_t number = begins(part) ? 0 : part == Part::boundary ? 1 : 2;
    arguments_.part = part;
    arguments_.both_sides = both_sides ? 1 : 0;
    std::vector<offpath_kernel_buffer_t> buffers{
        {static_cast<runtime::ForceAnswer*>(answers_.data()) + number, sizeof(runtime::ForceAnswer),
         OFFPATH_OUT}};
    if (in_place_) {
        const Lists& lists = lists_[in_use_];
        buffers.push_back(x_.buffer(reals_ * sizeof(Real), OFFPATH_IN));
        buffers.push_back(f_.buffer(reals_ * sizeof(Real), OFFPATH_INOUT));
        buffers.push_back(lists.rows.buffer(lists.row_bytes, OFFPATH_IN));
        buffers.push_back(lists.blocks.buffer(lists.block_bytes, OFFPATH_IN));
    } else {
        const std::size_t first = part == Part::boundary ? own_reals_ : 0,
                          end = part == Part::boundary ? reals_ : own_reals_;
        const auto some = [&](const RuntimeMemory& memory, offpath_access_t access) {
            buffers.push_back(
                {static_cast<Real*>(memory.data()) + first, (end - first) * sizeof(Real), access});
        };
        if (part != Part::last) some(x_, OFFPATH_IN);
        if (part != Part::first) some(f_, OFFPATH_OUT);
    }
    lost_ = offpath_compute(attachment_.forces(), &arguments_, arguments_.bytes(), buffers.data(),
                            buffers.size(), &parts_[number]) != OFFPATH_OK;
}

template <typename Real>
void RuntimeDevice<Real>::start(const Particles<Real>& particles, const Share& share) {
    started_ = Clock::now();
    own_reals_ = particles.reals(particles.local_slots);
    reals_ = particles.reals(particles.slots);
    if (lost_ || !x_.reserve(reals_ * sizeof(Real)) || !f_.reserve(reals_ * sizeof(Real))) {
        lost_ = true;
        return;
    }
    std::memcpy(x_.data(), particles.x.data(), own_reals_ * sizeof(Real));
    arguments_.own_reals = static_cast<std::int64_t>(own_reals_);
    arguments_.reals = static_cast<std::int64_t>(reals_);
    arguments_.energy = share.energy ? 1 : 0;
    arguments_.ranges = 0;
    rest_.clear();
    in_use_ = latest_;
    std::int32_t begin = 0;
    for (std::size_t list = 0; list < lists_[in_use_].ends.size(); ++list) {
        const std::int32_t end = lists_[in_use_].ends[list];
        const std::int32_t first = std::min(begin + share.first_rows[list], end);
        const std::int32_t middle = share.boundary ? first + (end - first) / 2 : end;
        arguments_.range[arguments_.ranges++] = {first, middle};
        rest_.push_back({middle, end});
        begin = end;
    }
    launch(share.boundary ? runtime::Part::first : runtime::Part::whole, interior_both_sides_);
}

template <typename Real>
void RuntimeDevice<Real>::take_ghosts(const Particles<Real>& particles) {
    if (lost_) return;
    std::memcpy(static_cast<Real*>(x_.data()) + own_reals_, particles.x.data() + own_reals_,
                (reals_ - own_reals_) * sizeof(Real));
    const Lists& lists = lists_[in_use_];
    arguments_.ranges = 1;
    arguments_.range[0] = {lists.ends.back(), lists.all_rows};
    launch(runtime::Part::boundary, boundary_both_sides_);
    if (lost_) return;
    arguments_.ranges = static_cast<std::int32_t>(rest_.size());
    std::copy(rest_.begin(), rest_.end(), arguments_.range);
    launch(runtime::Part::last, interior_both_sides_);
}

template <typename Real>
const Real* RuntimeDevice<Real>::ghost_forces(bool wait) {
    if (lost_) return nullptr;
    if (!wait && parts_[1] != nullptr && offpath_request_test(parts_[1]) == OFFPATH_IN_PROGRESS)
        return nullptr;
    lost_ = !settle(parts_[1]);
    return lost_ ? nullptr : static_cast<const Real*>(f_.data());
}

template <typename Real>
std::optional<typename Device<Real>::Outcome> RuntimeDevice<Real>::finish() {
    if (lost_) return std::nullopt;
    const std::size_t parts = parts_[2] != nullptr ? 3 : 1;
    const bool waited = offpath_request_test(parts_[parts - 1]) == OFFPATH_IN_PROGRESS;
    // Forces from other lists than those that were meant would be wrong, so these are asked as well.
    for (offpath_request_h* request : {&parts_[0], &parts_[1], &parts_[2], &lists_[in_use_].keeping})
        if (!settle(*request)) lost_ = true;
    if (lost_) return std::nullopt;
    const double elapsed = std::chrono::duration<double>(Clock::now() - started_).count();
    typename Device<Real>::Outcome outcome;
    double began = 0.0, ended = 0.0;
    for (std::size_t part = 0; part < parts; ++part) {
        runtime::ForceAnswer answer;
        std::memcpy(&answer, static_cast<const runtime::ForceAnswer*>(answers_.data()) + part, sizeof answer);
        outcome.sum += answer.sum;
        outcome.seconds += answer.end - answer.begin;
        if (part == 0) began = answer.begin;
        ended = answer.end;
    }
    // How long the way there and back took is known only if somebody waited. Else it is forgotten bit by bit,
    // so that one long way does not keep all later shares small.
    latency_ = waited ? std::max(0.0, elapsed - (ended - began)) : 0.9 * latency_;
    outcome.busy = std::max(outcome.seconds, ended - began) + latency_;
    outcome.forces = {static_cast<const Real*>(f_.data()), own_reals_};
    return outcome;
}

template class RuntimeDevice<float>;
template class RuntimeDevice<double>;

}  // namespace minimd
