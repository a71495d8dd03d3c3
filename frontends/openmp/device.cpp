#include "openmp/device.h"

#include "base/codes.h"
#include "base/environment.h"
#include "base/scheduling.h"
#include "target/records.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <stdexcept>

namespace offpath::openmp {
namespace {

constexpr int most_layouts = 16;
constexpr std::size_t block_alignment = 128;
constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::uint64_t query_nap_ns = 20'000'000;

}  // namespace

std::int32_t complain(const std::string& text) {
    static std::mutex mutex;
    static std::string last;
    std::lock_guard lock(mutex);
    if (text != last) std::fprintf(stderr, "offpath: %s\n", with_code(text, Code::target_region).c_str());
    last = text;
    return failure;
}

// OFFPATH_REGION_SECONDS, which `wrong_settings` has checked; none: the device decides.
std::optional<std::uint64_t> seconds_of_program() {
    static const std::optional<std::uint64_t> limit = []() -> std::optional<std::uint64_t> {
        if (environment::text("OFFPATH_REGION_SECONDS", "").empty()) return {};
        return environment::number("OFFPATH_REGION_SECONDS", 0);
    }();
    return limit;
}

std::string wrong_settings() {
    try {
        for (const char* name : {"OFFPATH_REGION_SECONDS", "OFFPATH_TARGET_PATIENCE"})
            (void)environment::number(name, 0);
        return {};
    } catch (const std::invalid_argument& problem) {
        return problem.what();
    }
}

std::uint64_t Device::limit_s() const {
    return seconds_of_program().value_or(facts_.seconds);
}

std::string Device::too_long(const char* region) const {
    if (limit_s() == 0) return {};
    return fmt::format("{} did not end within {}={}", region != nullptr ? region : "a transfer",
                       seconds_of_program() ? "OFFPATH_REGION_SECONDS" : "offpathd --kernel-seconds",
                       limit_s());
}

std::int32_t Device::failed(const std::string& what, const std::string& why) const {
    return complain(fmt::format("device {}: {}: {}", facts_.node, what, why));
}

Status Device::open(std::string& problem) {
    Status status = Status::unavailable;
    // Each process on the device has its memory at other addresses, which may be in the way of the program's.
    for (int i = 0; i < most_layouts && status == Status::unavailable; ++i) {
        std::unique_ptr<target::Target> target;
        status = target::Target::open(place_, target, problem);
        if (status != Status::ok) return status;
        if (unified_) status = target->unify(problem);
        if (status == Status::ok) target_ = std::move(target);
    }
    return status;
}

bool Device::start(bool unified) {
    std::lock_guard lock(mutex_);
    if (target_ != nullptr && unified == unified_) return true;
    unified_ = unified;
    std::string problem;
    // What the program requires is known after MPI_Init.
    if (target_ != nullptr ? target_->unify(problem) == Status::ok : open(problem) == Status::ok) return true;
    complain(problem);
    return false;
}

bool Device::prepare_mpi(bool unified) {
    std::string problem;
    if (!start(unified)) return false;
    if (mpi_.load(*target_, problem) == Status::ok) return true;
    failed("MPI in target regions", problem);
    return false;
}

bool Device::begin_mpi(std::uint32_t rank, std::uint32_t size) {
    std::string problem;
    if (mpi_.begin(rank, size, problem)) return true;
    failed("MPI in target regions", problem);
    return false;
}

TargetTable* Device::load(const DeviceImage& image) {
    const auto* const begin = static_cast<const std::byte*>(image.begin);
    const std::span<const std::byte> bytes(begin, static_cast<const std::byte*>(image.end));
    std::string problem;
    std::uint64_t module = 0;
    if (calls_mpi(bytes) && !prepare_mpi(unified_)) return nullptr;
    if (target_->load(bytes, module, problem) != Status::ok) {
        failed("the program's image cannot be loaded", problem);
        return nullptr;
    }
    std::vector<std::string> names;
    for (const OffloadEntry* entry = image.entries_begin; entry != image.entries_end; ++entry)
        names.emplace_back(entry->name);
    std::vector<std::uint64_t> addresses;
    if (Status status = target_->symbols(module, names, addresses); status != Status::ok) {
        failed("the symbols of the program's image", to_string(status));
        return nullptr;
    }
    if (unified_ && begin_unified(image, addresses) != Status::ok) return nullptr;
    Table made;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (addresses[i] == 0) {
            failed("the program's image", fmt::format("it has no symbol {}", names[i]));
            return nullptr;
        }
        OffloadEntry entry = image.entries_begin[i];
        entry.address = reinterpret_cast<void*>(addresses[i]);
        made.entries.push_back(entry);
    }
    std::lock_guard lock(mutex_);
    Table& table = tables_.emplace_back(std::move(made));
    table.table = {table.entries.data(), table.entries.data() + table.entries.size()};
    return &table.table;
}

// With unified shared memory, what an image has in place of a variable is a pointer to the host's variable.
Status Device::begin_unified(const DeviceImage& image, const std::vector<std::uint64_t>& addresses) {
    const std::uint32_t stream = target_->new_stream();
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        const OffloadEntry& entry = image.entries_begin[i];
        if (entry.bytes != 0 && addresses[i] != 0)
            (void)target_->put(stream, addresses[i], entry.address, entry.bytes);
    }
    std::string problem;
    const Status status = target_->sync(stream, problem);
    if (status != Status::ok) failed("the variables of the program's image", problem);
    return status;
}

const char* Device::name_of(const void* entry) {
    std::lock_guard lock(mutex_);
    for (const Table& table : tables_)
        for (const OffloadEntry& known : table.entries)
            if (known.address == entry) return known.name;
    return "a target region";
}

void* Device::allocate(std::int64_t bytes, const void* host) {
    if (unified_) {
        const std::size_t size = (static_cast<std::size_t>(bytes) + block_alignment) & ~(block_alignment - 1);
        void* const block = std::aligned_alloc(block_alignment, size);
        if (block == nullptr) {
            failed("no memory", fmt::format("{} bytes are not there", bytes));
            return nullptr;
        }
        std::lock_guard lock(mutex_);
        blocks_[static_cast<std::byte*>(block)] = size;
        return block;
    }
    if (void* const shared = shared_.share(*target_, host, static_cast<std::uint64_t>(bytes));
        shared != nullptr)
        return shared;
    if (void* const device = take_as_host(host); device != nullptr) return device;
    std::call_once(pool_, [this] { target_->open_pool(); });
    std::uint64_t address = 0;
    std::string problem;
    if (target_->allocate(static_cast<std::uint64_t>(bytes), address, problem) == Status::ok) {
        std::lock_guard lock(mutex_);
        mapped_[address] = {static_cast<std::uint64_t>(bytes), reinterpret_cast<std::uint64_t>(host)};
        return reinterpret_cast<void*>(address);
    }
    failed("no memory", problem);
    return nullptr;
}

// Nothing that was started still uses it.
std::int32_t Device::release(void* address) {
    if (unified_) {
        std::lock_guard lock(mutex_);
        if (blocks_.erase(static_cast<std::byte*>(address)) == 0)
            return failed("memory", fmt::format("{} is no device memory", address));
        std::free(address);
        return success;
    }
    if (shared_.unshare(*target_, address)) return success;
    {
        std::lock_guard lock(mutex_);
        if (const auto taken = taken_as_host_.find(address); taken != taken_as_host_.end()) {
            taken_as_host_.erase(taken);
            return success;
        }
        mapped_.erase(reinterpret_cast<std::uint64_t>(address));
    }
    return target_->release(0, reinterpret_cast<std::uint64_t>(address)) == Status::ok
               ? success
               : failed("memory", target_->problem());
}

void* Device::allocate_common(std::int64_t bytes) {
    if (unified_) return allocate(bytes, nullptr);
    void* address = nullptr;
    std::string problem;
    if (shared_.make(*target_, static_cast<std::uint64_t>(bytes), address, problem) == Status::ok)
        return address;
    failed("no memory for host and device", problem);
    return nullptr;
}

std::int32_t Device::release_common(void* address) {
    if (unified_) return release(address);
    return shared_.free(*target_, address)
               ? success
               : failed("memory", fmt::format("{} is no memory of host and device", address));
}

Device::Queue* Device::queue_of(AsyncInfo* async) {
    if (async != nullptr && async->queue != nullptr) return static_cast<Queue*>(async->queue);
    Queue* queue;
    {
        std::lock_guard lock(mutex_);
        if (free_queues_.empty()) {
            queue = &queues_.emplace_back();
            queue->stream = target_->new_stream();
        } else {
            queue = free_queues_.back();
            free_queues_.pop_back();
        }
    }
    if (async != nullptr) async->queue = queue;
    return queue;
}

void Device::give_back(Queue* queue) {
    std::lock_guard lock(mutex_);
    free_queues_.push_back(queue);
}

std::int32_t Device::finish(Queue* queue, bool wait, bool& done) {
    if (queue->sync == 0) queue->sync = target_->begin_sync(queue->stream);
    std::string problem;
    const Status status =
        wait ? target_->finish(queue->sync, true, problem, limit_s() * second_ns, too_long(queue->region))
             : target_->look(queue->sync, problem, query_nap_ns);
    done = status != Status::in_progress;
    if (!done) return success;
    const char* const what = queue->launched ? "a target region failed" : "a copy failed";
    queue->sync = 0;
    queue->launched = false;
    queue->region = nullptr;
    give_back(queue);
    return status == Status::ok ? success : failed(what, problem);
}

std::int32_t Device::settle(Queue* queue, AsyncInfo* async, Status status, bool waits) {
    if (status != Status::ok) return failed("it is lost", target_->problem());
    bool done;
    if (async == nullptr) return finish(queue, true, done);
    return waits ? synchronize(async) : success;
}

bool Device::is_of_map(const void* device, const void* host, std::uint64_t bytes) {
    if (shared_.shared(device)) return true;
    const auto there = reinterpret_cast<std::uint64_t>(device), here = reinterpret_cast<std::uint64_t>(host);
    std::lock_guard lock(mutex_);
    const auto next = mapped_.upper_bound(there);
    if (next == mapped_.begin()) return false;
    const auto& [begin, block] = *std::prev(next);
    if (there - begin >= block.bytes || bytes > block.bytes - (there - begin)) return false;
    // This process reads or writes its own memory for small copies, before they can be lost.
    return bytes <= target::inline_bytes || here - block.host == there - begin;
}

bool Device::in_program(const void* address) {
    if (!unified_) return false;
    std::lock_guard lock(mutex_);
    const auto next = blocks_.upper_bound(static_cast<const std::byte*>(address));
    if (next == blocks_.begin()) return false;
    const auto& [begin, bytes] = *std::prev(next);
    return static_cast<const std::byte*>(address) < begin + bytes;
}

// Regions that were started before may still use both.
std::int32_t Device::copy_here(void* to, const void* from, std::int64_t bytes, AsyncInfo* async) {
    if (async != nullptr && async->queue != nullptr && static_cast<Queue*>(async->queue)->launched)
        if (synchronize(async) != success) return failure;
    std::memmove(to, from, static_cast<std::size_t>(bytes));
    return success;
}

std::int32_t Device::submit(void* to, const void* from, std::int64_t bytes, AsyncInfo* async) {
    if (in_program(to)) return copy_here(to, from, bytes, async);
    if (is_taken_as_host(to, from)) return success;
    const auto size = static_cast<std::uint64_t>(bytes);
    if (shared_.same(*target_, to, from, size, true)) {
        not_copied_ += size;
        return success;
    }
    to_device_ += size;
    Queue* const queue = queue_of(async);
    return settle(queue, async,
                  target_->put(queue->stream, reinterpret_cast<std::uint64_t>(to), from,
                               static_cast<std::uint64_t>(bytes)),
                  !is_of_map(to, from, size));
}

std::int32_t Device::retrieve(void* to, const void* from, std::int64_t bytes, AsyncInfo* async) {
    if (in_program(from)) return copy_here(to, from, bytes, async);
    if (is_taken_as_host(from, to)) return success;
    const auto size = static_cast<std::uint64_t>(bytes);
    if (shared_.same(*target_, from, to, size, false)) {
        not_copied_ += size;
        return success;
    }
    from_device_ += size;
    Queue* const queue = queue_of(async);
    return settle(queue, async,
                  target_->get(queue->stream, to, reinterpret_cast<std::uint64_t>(from),
                               static_cast<std::uint64_t>(bytes)),
                  !is_of_map(from, to, size));
}

std::int32_t Device::exchange(void* from, void* to, std::int64_t bytes, AsyncInfo* async) {
    if (in_program(from) && in_program(to)) return copy_here(to, from, bytes, async);
    Queue* const queue = queue_of(async);
    return settle(queue, async,
                  target_->copy(queue->stream, reinterpret_cast<std::uint64_t>(to),
                                reinterpret_cast<std::uint64_t>(from), static_cast<std::uint64_t>(bytes)),
                  true);
}

// Arrays that are private to the region get memory of their own, where libomptarget's copy for them is
// shared.
Status Device::make_private(Queue& queue, const KernelArguments& kernel, std::span<std::uint64_t> values,
                            void** arguments, std::vector<std::uint64_t>& blocks) {
    Status status = Status::ok;
    std::size_t i = 0;
    for (std::size_t k = 0; i < values.size() && status == Status::ok; ++k) {
        const std::int64_t type = kernel.types[k];
        if ((type & map_parameter) == 0) continue;
        void* const there = arguments[i];
        std::uint64_t& value = values[i++];
        if ((type & (map_private | map_literal)) != map_private || !shared_.shared(there)) continue;
        const auto bytes = static_cast<std::uint64_t>(kernel.sizes[k]);
        const auto from = reinterpret_cast<std::uint64_t>(there);
        std::uint64_t block = 0;
        std::string problem;
        if (status = target_->allocate(bytes, block, problem); status != Status::ok) {
            failed("no memory", problem);
            break;
        }
        blocks.push_back(block);
        value += block - from;
        if ((type & map_to) != 0) status = target_->copy(queue.stream, block, from, bytes);
    }
    return status;
}

std::int32_t Device::launch(void* entry, void** arguments, const std::ptrdiff_t* offsets,
                            const KernelArguments& kernel, AsyncInfo* async) {
    const std::uint32_t count = kernel.count;
    if (count > target::max_arguments)
        return failed("a target region", fmt::format("it has {} arguments; at most {} are accepted", count,
                                                     target::max_arguments));
    std::uint64_t values[target::max_arguments];
    for (std::uint32_t i = 0; i < count; ++i)
        values[i] = reinterpret_cast<std::uint64_t>(arguments[i]) + static_cast<std::uint64_t>(offsets[i]);
    Queue* const queue = queue_of(async);
    if (limit_s() != 0) queue->region = name_of(entry);
    queue->launched = true;
    std::vector<std::uint64_t> blocks;
    Status status = Status::ok;
    if (kernel.types != nullptr && !unified_)
        status = make_private(*queue, kernel, std::span(values, count), arguments, blocks);
    if (status == Status::ok)
        status =
            target_->call(queue->stream, reinterpret_cast<std::uint64_t>(entry), std::span(values, count));
    for (const std::uint64_t block : blocks)
        (void)target_->release(queue->stream, block);
    if (status == Status::memory) return failure;
    return settle(queue, async, status);
}

void Device::report() const {
    std::fprintf(stderr,
                 "offpath: device %s: %llu bytes copied to it, %llu from it; %llu bytes shared instead\n",
                 facts_.node.c_str(), static_cast<unsigned long long>(to_device_),
                 static_cast<unsigned long long>(from_device_), static_cast<unsigned long long>(not_copied_));
    if (target_ == nullptr) return;
    const target::ImageCounts images = target_->image_counts();
    std::fprintf(stderr, "offpath: device %s: %llu bytes of images sent to it; %llu bytes were there\n",
                 facts_.node.c_str(), static_cast<unsigned long long>(images.sent_bytes),
                 static_cast<unsigned long long>(images.found_bytes));
}

std::int32_t Device::synchronize(AsyncInfo* async) {
    if (async->queue == nullptr) return success;
    bool done;
    const std::int32_t result = finish(static_cast<Queue*>(async->queue), true, done);
    async->queue = nullptr;
    return result;
}

// Called by helper threads of libomp, which would otherwise ask again and again. They share the program's
// cores with a thread in taskwait, which does not sleep, and should not wait for its time slice to end.
std::int32_t Device::query(AsyncInfo* async) {
    if (async->queue == nullptr) return success;
    thread_local const bool asked = (ask_for_short_slices(), true);
    (void)asked;
    bool done;
    const std::int32_t result = finish(static_cast<Queue*>(async->queue), false, done);
    if (done) async->queue = nullptr;
    return result;
}

std::int32_t Device::create_event(void** event) {
    *event = new Event;
    return success;
}

std::int32_t Device::record_event(void* event, AsyncInfo* async) {
    auto& recorded = *static_cast<Event*>(event);
    std::string ignored;
    std::lock_guard lock(recorded.mutex);
    if (recorded.sync != 0) (void)target_->finish(recorded.sync, true, ignored);
    recorded.sync = target_->begin_event(queue_of(async)->stream);
    return success;
}

std::int32_t Device::wait_event(void* event) {
    auto& recorded = *static_cast<Event*>(event);
    std::lock_guard lock(recorded.mutex);
    if (recorded.sync == 0) return success;
    std::string problem;
    const Status status =
        target_->finish(recorded.sync, true, problem, limit_s() * second_ns, too_long("a target region"));
    recorded.sync = 0;
    return status == Status::ok ? success : failed("a target region failed", problem);
}

std::int32_t Device::destroy_event(void* event) {
    std::string ignored;
    auto* const recorded = static_cast<Event*>(event);
    if (recorded->sync != 0) (void)target_->finish(recorded->sync, true, ignored);
    delete recorded;
    return success;
}

}  // namespace offpath::openmp
