// KernelJobs: the kernels of one session. Jobs (a kernel to be loaded, one to be run) are done one after the
// other, in the order in which they came: bytes without a pointer are copied into memory of ours that the
// kernel host maps, the host runs the kernel, what it has written is copied back. The event loop does no more
// for it than the copies, a few hundred KiB a round. Runs that need no copies are handed to the host ahead, a
// few at a time, so that it goes from one to the next by itself.
//
// The host is a process (kernel_host/kernel_host.h), started with the first job. When it ends, the job that
// it was at and the runs behind it end with Status::canceled; the next job starts another one.
//
// Ownership: the session; it borrows the session's memory. Threads: the proxy's. Life: any calls -> stop() ->
// closed() until it is true. Completions and answers are called from progress() and closed() only.
#pragma once

#include "control/kernel_commands.h"
#include "control/messages.h"
#include "kernel_host/kernel_host.h"
#include "memory/session_memory.h"

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace offpath::proxy {

struct KernelSettings {
    bool enabled = true;
    // Does each CPU that hosts may run on belong to a proxy? A proxy that spins beside a kernel then takes
    // time from it.
    bool beside_proxies = false;
    kernel_host::HostConfig host;
    // For clients on other systems: where their libraries must lie (none: they have no kernels), and how they
    // run.
    std::vector<std::string> remote_places;
    kernel_host::HostConfig remote_host;
};

class KernelJobs {
  public:
    using Answer = std::function<void(Status, const std::string&)>;
    struct Buffer {
        memory::HostRange range;  // pinned until the job is done
        std::uint32_t access = 0;
    };

    // `epoll`: where the host's descriptor is to be watched; whoever sees it there calls event().
    KernelJobs(const kernel_host::HostConfig& config, int epoll, memory::SessionMemory& memory,
               std::string client);
    ~KernelJobs();
    KernelJobs(const KernelJobs&) = delete;
    KernelJobs& operator=(const KernelJobs&) = delete;

    // invalid: too many kernels, or a number that is in use.
    Status load(const control::LoadKernel& kernel, Answer answer);
    bool knows(std::uint64_t kernel) const { return kernels_.contains(kernel); }
    void run(std::uint64_t kernel, std::span<const Buffer> buffers, std::span<const std::byte> arguments,
             Completion* done);
    void unload(std::uint64_t kernel);
    // Nothing uses the region any more.
    void region_gone(std::uint64_t region);

    unsigned progress();
    // Whether progress() would find something to do without an event.
    bool has_work() const;
    // Whether the host is at work.
    bool host_busy() const { return phase_ == Phase::loading || phase_ == Phase::running; }
    int event_fd() const { return host_ != nullptr ? host_->fd() : -1; }
    void event() { event_ = true; }

    // No job is started any more; those that are there end with `reason`.
    void stop(Status reason);
    bool closed();

  private:
    static constexpr std::size_t max_pieces = 4;
    // That the host has. Their records, of up to 16 KiB, have to fit into its socket.
    static constexpr std::size_t max_sent = 4;
    enum class Kind : std::uint8_t { load, run, unload };
    enum class Phase : std::uint8_t { waiting, loading, copying_in, running, copying_out };

    struct Kernel {
        std::string path, symbol;
        bool loaded = false;  // in the host that there is
    };
    struct Placed {
        Buffer buffer;
        kernel_host::Buffer place;
        bool copied = false;
    };
    struct Job {
        Kind kind = Kind::run;
        std::uint64_t kernel = 0;
        std::vector<Placed> buffers;
        bool copies = false;       // some of them
        std::uint64_t number = 0;  // of the host's answer
        std::vector<std::byte> arguments;
        Completion* done = nullptr;
        Answer answer;
    };
    struct Piece : Completion {
        KernelJobs* jobs = nullptr;
        bool busy = false;
    };

    bool step();
    bool start();
    bool ensure_host(std::string& problem);
    bool load_kernel();
    bool place_buffers();
    bool reserve(std::uint64_t bytes);
    bool copy(bool in);
    bool copied() const;
    bool may_send_ahead() const;
    void send_run(Job& job);
    void take_answers();
    void on_answer(const kernel_host::Answer& answer);
    void host_lost();
    void over(Status status, const std::string& why = {});
    void fail_queue(Status status);

    const kernel_host::HostConfig config_;
    const int epoll_;
    memory::SessionMemory& memory_;
    const std::string client_;

    std::unique_ptr<kernel_host::KernelHost> host_;
    std::unordered_map<std::uint64_t, Kernel> kernels_;
    std::unordered_set<std::uint64_t> mapped_;  // regions that the host has mapped
    std::vector<std::uint64_t> gone_;           // of which it has to be told when it is idle
    memory::File arena_file_;
    memory::Mapping arena_;
    bool arena_known_ = false;  // to the host

    std::deque<Job> queue_;  // the first one is at work unless phase_ is waiting
    Phase phase_ = Phase::waiting;
    std::size_t sent_ = 0;  // runs at the queue's front that the host has; > 0 while running, and only then
    std::uint64_t number_ = 0;
    std::array<Piece, max_pieces> pieces_;
    std::size_t pieces_busy_ = 0;
    std::size_t copy_at_ = 0;  // buffer
    std::uint64_t copy_offset_ = 0;
    Status copy_status_ = Status::ok;
    bool event_ = false;
    Status stopped_ = Status::ok;
};

}  // namespace offpath::proxy
