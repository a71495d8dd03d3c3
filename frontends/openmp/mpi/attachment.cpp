// The library's end of attach_record.h: the device attaches to the daemon beside it, as one rank of a job
// that has the hosts and the devices of all ranks (mpi/runtime/regions.h). What the ranks exchange for that
// goes through their programs.
#include "base/log.h"
#include "mpi/runtime/mixed_teams.h"
#include "openmp/mpi/attach_record.h"
#include "openmp/mpi/communicators.h"
#include "openmp/mpi/errors.h"
#include "openmp/mpi/predefined.h"
#include "openmp/mpi/requests.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

namespace offpath::region_mpi {
namespace {

// The thread in offpath_init and the calls of the plug-in take turns.
struct Talk {
    std::mutex mutex;
    std::condition_variable changed;
    Step step;
    bool told = false;      // `step` is for the plug-in
    bool answered = false;  // the plug-in has done what it said
    bool fine = false;
};

struct Device {
    offpath_context_h context = nullptr;
    std::unordered_map<std::uint64_t, std::uint64_t> own_of;  // by the host's handle
    std::atomic<bool> attached{false};
};

Talk talk;
Device device;

void tell(const Step& step) {
    std::lock_guard lock(talk.mutex);
    talk.step = step;
    talk.told = true;
    talk.changed.notify_all();
}

int exchange(void*, const void* mine, std::size_t bytes, void* all) {
    talk.answered = false;
    tell(
        {Want::exchange, bytes, reinterpret_cast<std::uint64_t>(mine), reinterpret_cast<std::uint64_t>(all)});
    std::unique_lock lock(talk.mutex);
    talk.changed.wait(lock, [] { return talk.answered; });
    return talk.fine ? 0 : 1;
}

bool make_communicators(std::uint32_t rank, std::uint32_t size) try {
    open_communicators(mpi::mixed_teams::rank_of(rank), mpi::mixed_teams::rank_of(size));
    return true;
} catch (const MpiError& error) {
    log::error(offpath::Code::target_region, "MPI in target regions: {}", error.text);
    return false;
}

void attach(std::uint32_t rank, std::uint32_t size) {
    offpath_init_params_t params{};
    params.struct_size = sizeof params;
    params.threads = OFFPATH_THREADS_MULTIPLE;
    params.allgather = exchange;
    params.rank = rank;
    params.size = size;
    const bool fine = offpath_init(&params, &device.context) == OFFPATH_OK && make_communicators(rank, size);
    device.attached.store(fine);
    tell({fine ? Want::nothing : Want::failed});
}

}  // namespace

bool attached() {
    return device.attached.load();
}

offpath_context_h context() {
    return device.context;
}

std::uint64_t own_bits(std::uint64_t bits) {
    const auto found = device.own_of.find(bits);
    return found != device.own_of.end() ? found->second : bits;
}

}  // namespace offpath::region_mpi

using namespace offpath::region_mpi;

OFFPATH_EXPORT void offpath_region_mpi_begin(std::uint64_t rank, std::uint64_t size) {
    std::thread(attach, static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(size)).detach();
}

OFFPATH_EXPORT void offpath_region_mpi_step(std::uint64_t record) {
    std::unique_lock lock(talk.mutex);
    talk.changed.wait(lock, [] { return talk.told; });
    talk.told = false;
    *reinterpret_cast<Step*>(record) = talk.step;
}

OFFPATH_EXPORT void offpath_region_mpi_go_on(std::uint64_t fine) {
    std::lock_guard lock(talk.mutex);
    talk.fine = fine != 0;
    talk.answered = true;
    talk.changed.notify_all();
}

OFFPATH_EXPORT void offpath_region_mpi_names(std::uint64_t record) {
    static const std::string text = [] {
        std::string all;
        for (const Predefined& each : predefined)
            (all += each.name) += '\0';
        return all;
    }();
    *reinterpret_cast<Names*>(record) = {reinterpret_cast<std::uint64_t>(text.data()), text.size()};
}

OFFPATH_EXPORT void offpath_region_mpi_learn(std::uint64_t addresses, std::uint64_t count) {
    const auto* const hosts = reinterpret_cast<const std::uint64_t*>(addresses);
    for (std::size_t i = 0; i < count && i < predefined.size(); ++i)
        if (hosts[i] != 0)
            device.own_of.emplace(hosts[i], reinterpret_cast<std::uint64_t>(predefined[i].address));
}

OFFPATH_EXPORT void offpath_region_mpi_end() {
    if (!device.attached.exchange(false)) return;
    // A receive that nothing matches would keep offpath_finalize for ever.
    for (int looks = 0; live_requests() > 0; ++looks) {
        if (looks == 1000) {
            offpath::log::warn(offpath::Code::unfinished,
                               "MPI_Finalize: requests of target regions are not complete");
            return;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    offpath_finalize(device.context);
}
