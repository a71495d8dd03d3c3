#include "life.h"

#include "base/child_copies.h"
#include "base/log.h"
#include "base/patience.h"
#include "base/variables.h"
#include "core.h"
#include "device.h"
#include "exchange.h"
#include "executable_data.h"
#include "heap.h"
#include "job_end.h"
#include "node_peers.h"
#include "peer_watch.h"
#include "recovery.h"
#include "settings.h"
#include "symmetric_files.h"

#include <fmt/format.h>
#include <offpath/loss.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

#include <unistd.h>

namespace offpath::shmem {

namespace {

// How often devices may be lost while the job starts.
constexpr int most_losses = 4;

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
    setenv("OFFPATH_DAEMON_WAIT_S", "2", 0);
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
        if (files.heap != nullptr) child_copies::note_copy(files.heap, bytes, file.get());
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

// Everything that comes before the last step, in which all PEs meet. May be done again. `data_file` is empty
// if it has been done before.
void make_all(DataRange data, MemoryFile data_file) {
    const Settings settings = agree_on_settings();
    world.checks = settings.checks != 0;
    world.near_device_bytes = settings.near_device_bytes;
    MemoryFile& file = files.segments[data_segment];
    if (data_file) file = std::move(data_file);
    agree_on_data(data, file);
    world.segments[data_segment] = {data.begin, data.bytes};
    make_heap(settings.heap_bytes);
    open_window(settings.map != 0);
    const auto recovers = gather(static_cast<std::uint8_t>(settings.attach_again != 0 && can_recover()));
    if (std::ranges::all_of(recovers, [](std::uint8_t one) { return one != 0; })) open_recovery();
    open_peer_watch();
    world.ready = true;
}

void undo_all() {
    world.ready = false;
    drop_peer_watch();
    drop_recovery();
    close_peers();
    drop_heap();
}

bool may_start_again() {
    if (world.threads || world.pes < 2 || world.pes > most_recovering_pes) return false;
    try {
        return read_settings().attach_again != 0;
    } catch (const std::invalid_argument&) {
        return false;  // agree_on_settings() says so
    }
}

// Attaches to the present devices. True: with everything that this PE has made. False: all is to be made
// again.
bool goes_on_with_all(offpath_status_t lost) {
    bool attached = false;
    if (world.ready) {
        try {
            if (recovered(lost)) return true;
        } catch (const OthersStart&) {
            attached = true;
        }
    } else {
        attached = attach_to_present(lost_after_ns());
    }
    if (!attached) {
        world.starting = false;
        fail_device(lost, "the start of the job");
    }
    undo_all();
    return false;
}

}  // namespace

// A device that is lost on the way costs the steps until then. A PE that has met the others in the last step
// may have begun to run the program, so a PE that was in that step goes on with what it has made, unless
// another one was not so far.
void start(int threads) {
    static bool called = false;
    if (std::exchange(called, true)) fail("the library was started before");
    // This must come before the library starts threads.
    const DataRange data = find_executable_data();
    MemoryFile data_file;
    std::string problem;
    if (data.bytes > 0 && !share_executable_data(data, data_file, problem))
        log::info("static data cannot be mapped by others, the device moves it: {}", problem);
    attach(threads);
    std::optional<offpath_status_t> lost;
    for (int left = most_losses;; --left) {
        world.starting = left > 0 && may_start_again();
        try {
            if (lost && goes_on_with_all(*lost)) break;
            make_all(data, std::exchange(data_file, {}));
            meet();  // no PE needs the files of others any more
            break;
        } catch (const LostAtStart& loss) {
            lost = loss.status;
        }
    }
    world.starting = false;
    // The devices that come after the present ones map them.
    for (MemoryFile& file : files.segments)
        if (!journal.on()) file = {};
    open_put_slots();
    world.running = true;
    world_context.pes = world.pes;
}

}  // namespace offpath::shmem
