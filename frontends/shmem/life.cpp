#include "life.h"

#include "base/log.h"
#include "base/variables.h"
#include "core.h"
#include "device.h"
#include "device_loss.h"
#include "executable_data.h"
#include "heap.h"
#include "job_end.h"
#include "node_peers.h"
#include "peer_watch.h"
#include "recovery.h"
#include "settings.h"
#include "world.h"

#include <fmt/format.h>
#include <offpath/loss.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include <unistd.h>

namespace offpath::shmem {

World world;

namespace {

enum class Phase : std::uint8_t { before, running, after };
Phase phase = Phase::before;

struct Files {
    std::array<MemoryFile, segment_count> segments;
    std::array<offpath_region_h, segment_count> regions{};
    std::byte* heap = nullptr;  // the whole heap, including the library's part
};
Files files;

template <typename Value>
std::vector<Value> gather(const Value& mine) {
    static_assert(std::is_trivially_copyable_v<Value>);
    std::vector<Value> all(static_cast<std::size_t>(world.pes));
    offpath_request_h request = nullptr;
    must(offpath_iallgather(world.team, &mine, all.data(), sizeof mine, &request),
         "an exchange between the PEs");
    finish(request, "an exchange between the PEs");
    return all;
}

int alone(void*, const void* mine, std::size_t bytes, void* all) {
    std::memcpy(all, mine, bytes);
    return 0;
}

bool has_launcher() {
    return std::getenv("PMIX_RANK") != nullptr;
}

void attach(int threads) {
    // A device is always available: if no daemon runs, the library starts one.
    setenv("OFFPATH_AUTOSTART", "1", 0);
    offpath_init_params_t params{};
    params.struct_size = sizeof params;
    params.threads = threads == thread_multiple ? OFFPATH_THREADS_MULTIPLE : OFFPATH_THREADS_SINGLE;
    params.size = 1;
    if (!has_launcher()) params.allgather = alone;
    // On failure the call has already written the reason for all ranks, with the rank that failed.
    if (offpath_init(&params, &world.context) != OFFPATH_OK) end_job(1);
    std::uint32_t pe = 0, pes = 0;
    must(offpath_team_world(world.context, &world.team), "the team of all PEs");
    must(offpath_team_rank(world.team, &pe), "the team of all PEs");
    must(offpath_team_size(world.team, &pes), "the team of all PEs");
    world.pe = static_cast<int>(pe);
    world.pes = static_cast<int>(pes);
    world.threads = threads == thread_multiple;
    world.thread_level = threads;
}

// Returns PE 0's settings. If no heap size was set, it is the smallest default of all PEs.
Settings agree_on_settings() {
    struct Say {
        Settings settings;
        std::uint64_t otherwise = 0;
        std::uint32_t bad = 0;
    } mine;
    mine.otherwise = default_heap_bytes();
    try {
        mine.settings = read_settings();
    } catch (const std::invalid_argument& error) {
        if (world.pe == 0) complain(error.what(), Code::setting);
        mine.bad = 1;
    }
    if (world.pe == 0)
        for (const std::string& line : environment::unknown_variables())
            complain(line, Code::setting);
    const std::vector<Say> all = gather(mine);
    if (all[0].bad != 0) end_job(1);
    Settings settings = all[0].settings;
    if (settings.heap_bytes == 0) {
        settings.heap_bytes = UINT64_MAX;
        for (const Say& say : all)
            settings.heap_bytes = std::min(settings.heap_bytes, say.otherwise);
    }
    return settings;
}

// Keeps the range only if all PEs run the same program. Otherwise no PE has one.
void agree_on_data(DataRange& data, MemoryFile& file) {
    const std::vector<std::uint64_t> programs = gather(executable_identity());
    const auto differs = [&](std::uint64_t identity) { return identity != programs[0]; };
    if (std::none_of(programs.begin(), programs.end(), differs)) return;
    if (world.pe == 0) log::info("the PEs run different programs: their static data is not symmetric");
    data = {};
    file = {};
}

offpath_status_t share(SegmentId id) {
    const Segment& segment = world.segments[id];
    return offpath_mem_share(world.context, files.segments[id].get(), segment.begin, segment.bytes,
                             &files.regions[id]);
}

// Registers the segment so that the device maps it too; if that is not possible, it is ordinary memory.
bool is_mapped_by_device(SegmentId id) {
    const Segment& segment = world.segments[id];
    if (!files.segments[id]) return false;
    if (files.regions[id] == nullptr) must(share(id), "sharing symmetric memory with the device");
    offpath_back_end_t back_end{};
    offpath_progress_t progress{};
    must(offpath_mem_query(world.context, segment.begin, segment.bytes, &back_end, &progress),
         "offpath_mem_query");
    return back_end == OFFPATH_BACK_END_MAP;
}

// If a step failed on some PEs, the first of them writes the reason, and then all PEs end.
void succeed_everywhere(bool succeeded, const std::string& problem) {
    const std::vector<std::uint8_t> all = gather(static_cast<std::uint8_t>(succeeded ? 1 : 0));
    const auto failed = std::count(all.begin(), all.end(), 0);
    if (failed == 0) return;
    if (std::find(all.begin(), all.end(), 0) - all.begin() == world.pe)
        complain(failed == 1 ? problem : fmt::format("{} (of {} PEs)", problem, failed), Code::no_device);
    meet();  // the message has been written
    end_job(1);
}

void make_heap(std::uint64_t user_bytes) {
    std::string problem;
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t bytes = (internal_bytes + user_bytes + page - 1) / page * page;
    MemoryFile& file = files.segments[heap_segment];
    if (MemoryFile::make("offpath-shmem-heap", bytes, file, problem)) {
        files.heap = file.map(bytes);
        if (files.heap == nullptr)
            problem =
                fmt::format("a symmetric heap of {} bytes (SHMEM_SYMMETRIC_SIZE) cannot be mapped", bytes);
    }
    bool made = files.heap != nullptr;
    world.segments[heap_segment] = {files.heap, bytes};
    // A size that is too large for one device is too large for all: PE 0 asks first.
    if (made && world.pe == 0) {
        const offpath_status_t status = share(heap_segment);
        made = status == OFFPATH_OK;
        if (!made)
            problem = fmt::format("a symmetric heap of {} bytes (SHMEM_SYMMETRIC_SIZE): the device says {}",
                                  bytes, offpath_status_string(status));
    }
    succeed_everywhere(made, problem);
    open_heap(files.heap + internal_bytes, user_bytes);
}

// Exposes the segment. Returns whether the device has it mapped.
bool attach_segment(SegmentId id) {
    const Segment& segment = world.segments[id];
    const bool shared = is_mapped_by_device(id);
    must(offpath_window_attach(world.window, segment.begin, segment.bytes), "the window of symmetric memory");
    return shared;
}

void open_window(bool map) {
    must(offpath_window_create_dynamic(world.team, &world.window), "the window of symmetric memory");
    Card card;
    card.host = this_host();
    card.pid = getpid();
    for (const SegmentId id : {heap_segment, data_segment}) {
        const Segment& segment = world.segments[id];
        if (segment.bytes == 0) continue;
        Card::OfSegment& mine = card.segments[id];
        mine.address = reinterpret_cast<std::uintptr_t>(segment.begin);
        mine.bytes = segment.bytes;
        mine.shared = attach_segment(id) ? 1 : 0;
        mine.fd = files.segments[id].get();
        if (mine.fd >= 0) mine.file = files.segments[id].identity();
    }
    open_peers(gather(card), map);
}

}  // namespace

int my_pe() {
    return world.pe;
}
int n_pes() {
    return world.pes;
}
bool running() {
    return world.running;
}
bool multithreaded() {
    return world.threads;
}

void meet() {
    must(try_to_meet(), "a barrier");
}

offpath_status_t try_to_meet() {
    return waited_for([](offpath_request_h* request) { return offpath_ibarrier(world.team, request); });
}

bool attach_again(std::uint64_t limit_ns, void (*before_use)()) {
    files.regions = {};
    world.window = nullptr;
    if (offpath_context_attach_again(&world.context, limit_ns) != OFFPATH_OK) return false;
    must(offpath_team_world(world.context, &world.team), "the team of all PEs");
    must(offpath_window_create_dynamic(world.team, &world.window), "the window of symmetric memory");
    for (const SegmentId id : {heap_segment, data_segment})
        if (world.segments[id].bytes > 0) (void)attach_segment(id);
    before_use();
    meet();
    return true;
}

namespace {

void must_at_end(offpath_status_t status, const char* what) {
    // Behind the end of the window no PE has anything left to do for another one.
    const bool over = journal.on() && status == OFFPATH_ERR_PEER_LOST;
    if (status != OFFPATH_OK && !over && !goes_on_after(status)) fail_device(status, what);
}

// Waits for all operations and all PEs, and ends the window. The PEs of one node have met without the device
// before they come here. If a device is lost, other PEs may still need this one.
void end_window() {
    while (true) {
        quiet(world_context);
        offpath_status_t status = try_to_meet();
        if (status != OFFPATH_OK && recovered(status)) continue;
        if (status != OFFPATH_OK && !goes_on_after(status)) fail_device(status, "a barrier");
        status = offpath_window_destroy(world.window);
        if (status == OFFPATH_OK || !recovered_at_end(status)) {
            must_at_end(status, "the end of the window");
            return;
        }
    }
}

}  // namespace

void start(int threads) {
    if (phase != Phase::before) fail("the library was started before");
    phase = Phase::running;
    // This must come before the library starts threads.
    DataRange data = find_executable_data();
    MemoryFile data_file;
    std::string problem;
    if (data.bytes > 0 && !share_executable_data(data, data_file, problem))
        log::info("static data cannot be mapped by others, the device moves it: {}", problem);
    attach(threads);
    const Settings settings = agree_on_settings();
    world.checks = settings.checks != 0;
    world.near_device_bytes = settings.near_device_bytes;
    agree_on_data(data, data_file);
    world.segments[data_segment] = {data.begin, data.bytes};
    files.segments[data_segment] = std::move(data_file);
    make_heap(settings.heap_bytes);
    open_window(settings.map != 0);
    const auto recovers = gather(static_cast<std::uint8_t>(settings.attach_again != 0 && can_recover()));
    if (std::ranges::all_of(recovers, [](std::uint8_t one) { return one != 0; })) open_recovery();
    open_peer_watch();
    meet();  // no PE needs the files of others any more
    // The devices that come after the present ones map them.
    for (MemoryFile& file : files.segments)
        if (!journal.on()) file = {};
    open_put_slots();
    world.running = true;
    world_context.pes = world.pes;
}

void stop() {
    if (phase != Phase::running) return;
    end_window();
    phase = Phase::after;
    world_context.pes = 0;
    world.running = false;
    for (offpath_region_h& region : files.regions) {
        if (region != nullptr && world.context != nullptr)
            must_at_end(offpath_mem_deregister(region), "the end of symmetric memory");
        region = nullptr;
    }
    close_peer_watch();
    // A script may start the next program as soon as this one has ended on this node. A launcher's server
    // that has only fences miscounts the ranks of a fence if it loses a connection meanwhile. So all PEs
    // close their connections before any PE ends.
    if (world.context != nullptr) {
        must(offpath_context_leave_launcher(world.context), "leaving the launcher");
        must_at_end(try_to_meet(), "a barrier");
        offpath_finalize(world.context);
    }
    close_recovery();
    close_peers();
    close_heap();
    unmap(files.heap, world.segments[heap_segment].bytes);
    world.segments = {};
    files = {};
}

void* internal_alloc(std::size_t bytes) {
    static std::size_t used = 0;
    const std::size_t begin = used;
    const std::size_t room = (bytes + 63) / 64 * 64;
    if (room > internal_bytes - used)
        fail(fmt::format("{} bytes of the library's own symmetric memory: {} of {} are in use", bytes, used,
                         internal_bytes));
    used += room;
    return files.heap + begin;
}

}  // namespace offpath::shmem
