#include "openmp/region_mpi.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string_view>

namespace offpath::openmp {
namespace {

using region_mpi::Names;
using region_mpi::Step;
using region_mpi::Want;

// Null: the process has no MPI.
const char* library_for_process() {
    if (dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world") != nullptr) return "region-mpi-openmpi";
    return dlsym(RTLD_DEFAULT, "MPI_Send") != nullptr ? "region-mpi-mpich" : nullptr;
}

}  // namespace

bool calls_mpi(std::span<const std::byte> image) {
    // std::string_view::find would look at each zero of the image by itself.
    constexpr std::string_view begin("\0MPI_", 5);
    return memmem(image.data(), image.size(), begin.data(), begin.size()) != nullptr;
}

Status RegionMpi::load(target::Target& target, std::string& problem) {
    std::lock_guard lock(mutex_);
    const char* const library = library_for_process();
    if (target_ != nullptr || library == nullptr) return Status::ok;
    std::uint64_t module = 0;
    if (Status status = target.load_library(library, module, problem); status != Status::ok) return status;
    const std::string names[] = {region_mpi::begin_name, region_mpi::step_name,  region_mpi::go_on_name,
                                 region_mpi::names_name, region_mpi::learn_name, region_mpi::end_name};
    std::vector<std::uint64_t> found;
    if (Status status = target.symbols(module, names, found); status != Status::ok) return status;
    if (std::count(found.begin(), found.end(), 0) > 0) {
        problem = "the device's library for MPI is of another release";
        return Status::version;
    }
    functions_ = {found[0], found[1], found[2], found[3], found[4], found[5]};
    if (Status status = target.allocate(sizeof(Step), record_, problem); status != Status::ok) return status;
    stream_ = target.new_stream();
    target_ = &target;
    return Status::ok;
}

Status RegionMpi::call(std::uint64_t function, std::initializer_list<std::uint64_t> arguments) {
    if (Status status = target_->call(stream_, function, std::span(arguments.begin(), arguments.size()));
        status != Status::ok)
        return status;
    return target_->sync(stream_, problem_);
}

Status RegionMpi::read(void* to, std::uint64_t address, std::uint64_t bytes) {
    if (Status status = target_->get(stream_, to, address, bytes); status != Status::ok) return status;
    return target_->sync(stream_, problem_);
}

Status RegionMpi::write(std::uint64_t address, const void* from, std::uint64_t bytes) {
    if (Status status = target_->put(stream_, address, from, bytes); status != Status::ok) return status;
    return target_->sync(stream_, problem_);
}

// Regions get variables with the host's handles.
Status RegionMpi::tell_handles() {
    Names names;
    Status status = call(functions_.names, {record_});
    if (status == Status::ok) status = read(&names, record_, sizeof names);
    if (status != Status::ok || names.bytes == 0) return status;
    std::string text(names.bytes, '\0');
    if (status = read(text.data(), names.text, names.bytes); status != Status::ok) return status;
    std::vector<std::uint64_t> addresses;
    for (std::size_t at = 0; at < text.size(); at += std::strlen(&text[at]) + 1)
        addresses.push_back(reinterpret_cast<std::uint64_t>(dlsym(RTLD_DEFAULT, &text[at])));
    const std::uint64_t bytes = addresses.size() * sizeof(std::uint64_t);
    std::uint64_t there = 0;
    if (status = target_->allocate(bytes, there, problem_); status != Status::ok) return status;
    status = write(there, addresses.data(), bytes);
    if (status == Status::ok) status = call(functions_.learn, {there, addresses.size()});
    (void)target_->release(stream_, there);
    return status;
}

bool RegionMpi::begin(std::uint32_t rank, std::uint32_t size, std::string& problem) {
    if (target_ == nullptr) return false;
    Status status = tell_handles();
    if (status == Status::ok) status = call(functions_.begin, {rank, size});
    step_ = {};
    if (status == Status::ok) return true;
    problem = problem_.empty() ? to_string(status) : problem_;
    return false;
}

bool RegionMpi::next_step() {
    if (step_.want == Want::failed) return false;
    if (call(functions_.step, {record_}) != Status::ok || read(&step_, record_, sizeof step_) != Status::ok)
        step_.want = Want::failed;
    return step_.want != Want::failed;
}

bool RegionMpi::take(void* mine, std::size_t bytes) {
    if (!next_step() || step_.want != Want::exchange) return false;
    if (step_.bytes == bytes && read(mine, step_.mine, bytes) == Status::ok) return true;
    give(nullptr, 0);
    return false;
}

void RegionMpi::give(const void* all, std::size_t bytes) {
    const bool fine = all != nullptr && write(step_.all, all, bytes) == Status::ok;
    (void)call(functions_.go_on, {fine ? 1U : 0U});
}

bool RegionMpi::joined() {
    while (next_step() && step_.want == Want::exchange)
        give(nullptr, 0);
    return step_.want == Want::nothing;
}

void RegionMpi::end() {
    (void)call(functions_.end, {});
}

}  // namespace offpath::openmp
