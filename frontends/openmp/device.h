// Device: one device as libomptarget sees it. Its target host is started with the first use. Threads: any; an
// AsyncInfo belongs to one thread at a time.
#pragma once

#include "openmp/abi.h"
#include "openmp/region_mpi.h"
#include "openmp/shared_memory.h"
#include "target/program/target.h"

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace offpath::openmp {

// Tells people, once a cause, what failed. Returns `failure`.
std::int32_t complain(const std::string& text);

// What is wrong with the variables that are read here; empty: nothing.
std::string wrong_settings();

class Device {
  public:
    Device(target::Place place, target::DeviceFacts facts)
        : place_(std::move(place)), facts_(std::move(facts)) {}

    const target::DeviceFacts& facts() const { return facts_; }
    // `unified`: the program requires unified shared memory.
    bool start(bool unified);
    // Where an image of the program calls MPI: loads what that needs, and joins the devices of all ranks.
    // Both tell what failed.
    bool prepare_mpi(bool unified);
    bool begin_mpi(std::uint32_t rank, std::uint32_t size);
    RegionMpi& mpi() { return mpi_; }
    // Null: it failed, which was told.
    TargetTable* load(const DeviceImage& image);

    // For the data at `host`, which the device may share; null: for none.
    void* allocate(std::int64_t bytes, const void* host);
    std::int32_t release(void* address);
    // Memory at the same address for host and device.
    void* allocate_common(std::int64_t bytes);
    std::int32_t release_common(void* address);
    // Without `async`, these wait for their end.
    std::int32_t submit(void* to, const void* from, std::int64_t bytes, AsyncInfo* async);
    std::int32_t retrieve(void* to, const void* from, std::int64_t bytes, AsyncInfo* async);
    std::int32_t exchange(void* from, void* to, std::int64_t bytes, AsyncInfo* async);
    std::int32_t launch(void* entry, void** arguments, const std::ptrdiff_t* offsets,
                        const KernelArguments& kernel, AsyncInfo* async);
    std::int32_t synchronize(AsyncInfo* async);
    // Prints how many bytes have been copied, and how many were not because they are shared.
    void report() const;
    // The queue is gone from `async` when all is done.
    std::int32_t query(AsyncInfo* async);

    std::int32_t create_event(void** event);
    std::int32_t record_event(void* event, AsyncInfo* async);
    std::int32_t wait_event(void* event);
    std::int32_t destroy_event(void* event);

  private:
    // What an AsyncInfo refers to.
    struct Queue {
        std::uint32_t stream = 0;
        std::uint64_t sync = 0;        // that has begun; 0: none
        const char* region = nullptr;  // that was launched last, where there is a limit of time
        bool launched = false;         // something since the last sync
    };
    struct Event {
        std::mutex mutex;
        std::uint64_t sync = 0;
    };
    struct Table {
        std::vector<OffloadEntry> entries;
        TargetTable table{};
    };

    Status open(std::string& problem);
    // How long a wait for regions may take; 0: for ever. And what the program is told then; null: a transfer.
    std::uint64_t limit_s() const;
    std::string too_long(const char* region) const;
    Status begin_unified(const DeviceImage& image, const std::vector<std::uint64_t>& addresses);
    bool in_program(const void* address);
    // The device address that a map names in place of one of the host's; null: it names none.
    void* take_as_host(const void* host);
    bool is_taken_as_host(const void* device, const void* host);
    std::int32_t copy_here(void* to, const void* from, std::int64_t bytes, AsyncInfo* async);
    Queue* queue_of(AsyncInfo* async);
    const char* name_of(const void* entry);
    void give_back(Queue* queue);
    // Waits for what was started if there is no `async`, or if it has to.
    std::int32_t settle(Queue* queue, AsyncInfo* async, Status status, bool waits = false);
    // Whether a map, which is waited for, copies between both. libomptarget does not look at how the copies
    // of omp_target_memcpy end after they have begun.
    // A small copy to mapped memory counts as a map's: its data travel with the request, so the device does
    // not touch the program.
    bool is_of_map(const void* device, const void* host, std::uint64_t bytes);
    std::int32_t finish(Queue* queue, bool wait, bool& done);
    Status make_private(Queue& queue, const KernelArguments& kernel, std::span<std::uint64_t> values,
                        void** arguments, std::vector<std::uint64_t>& blocks);
    std::int32_t failed(const std::string& what, const std::string& why) const;

    const target::Place place_;
    const target::DeviceFacts facts_;
    bool unified_ = false;  // device memory is the program's own memory; set before target_
    std::mutex mutex_;
    struct Mapped {
        std::uint64_t bytes = 0, host = 0;  // host 0: made by omp_target_alloc
    };
    std::map<std::uint64_t, Mapped> mapped_;          // by the device's address
    std::map<const std::byte*, std::size_t> blocks_;  // of device memory in the program, with their bytes
    std::multiset<const void*> taken_as_host_;        // see take_as_host()
    std::unique_ptr<target::Target> target_;
    std::once_flag pool_;
    RegionMpi mpi_;
    SharedMemory shared_;
    std::atomic<std::uint64_t> to_device_{0}, from_device_{0}, not_copied_{0};  // bytes
    std::deque<Table> tables_;
    std::deque<Queue> queues_;
    std::vector<Queue*> free_queues_;
};

}  // namespace offpath::openmp
