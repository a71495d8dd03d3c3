// KernelJobs: runs the kernels of one stream of a session. A job loads, runs or unloads a kernel; jobs are
// done one after the other, in order of arrival. Bytes without a pointer are copied into memory that the
// kernel host maps. The host runs the kernel, and its output is copied back. The event loop only does these
// copies, a few hundred KiB a round. Runs that need no copies are sent to the host in advance, a few at a
// time, so that it never waits between them.
//
// The host is a process (kernel_host/kernel_host.h), started with the first job. When it ends, its current
// job and the runs after it end with Status::canceled; the next job starts another host. A host whose kernel
// exceeds its limit of time is stopped, and killed unless it has answered in the meantime.
//
// Ownership: the session's KernelStreams; it borrows the session's memory. Threads: the proxy's. Life: any
// calls -> stop() -> closed() until it is true. Completions and answers are called from progress() and
// closed() only.
#pragma once

#include "base/clock.h"
#include "control/kernel_commands.h"
#include "control/messages.h"
#include "engine/teams/kernels.h"
#include "kernel_host/kernel_host.h"
#include "memory/session_memory.h"
#include "proxy/accounts.h"
#include "proxy/kernel_output.h"

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
    std::uint32_t seconds = 0;  // that a run may take if the program sets no limit; 0: no limit
    // Whether every CPU that hosts may run on belongs to a proxy. A proxy that spins on such a CPU then takes
    // time from the kernel.
    bool beside_proxies = false;
    kernel_host::HostConfig host;
    // For clients on other systems: the directories that their libraries must be in (none: they may run no
    // kernels), and how their kernels run.
    std::vector<std::string> remote_places;
    kernel_host::HostConfig remote_host;
    std::shared_ptr<Accounts> accounts;  // whose users these run as; null: the daemon's
};

class KernelJobs {
  public:
    using Answer = std::function<void(Status, const std::string&)>;

    // `epoll` is where the host's descriptors are watched. The code that sees an event there calls event().
    // `seconds`: as KernelSettings says.
    KernelJobs(const kernel_host::HostConfig& config, std::uint32_t seconds, const Clock& clock, int epoll,
               memory::SessionMemory& memory, KernelTexts& texts, std::string client);
    ~KernelJobs();
    KernelJobs(const KernelJobs&) = delete;
    KernelJobs& operator=(const KernelJobs&) = delete;

    // invalid: too many kernels, or the number is in use.
    Status load(const control::LoadKernel& kernel, Answer answer);
    bool knows(std::uint64_t kernel) const { return kernels_.contains(kernel); }
    // As in engine::Kernels; invalid: no such kernel.
    Status run(std::uint64_t kernel, std::span<const engine::KernelBuffer> buffers,
               std::span<const std::byte> arguments, Completion* done);
    bool take_back(const Completion* done);
    void unload(std::uint64_t kernel);
    // Nothing uses the region any more.
    void region_gone(std::uint64_t region);

    unsigned progress();
    // Whether progress() has work without an event.
    bool has_work() const;
    // Whether the host is working.
    bool host_busy() const { return phase_ == Phase::loading || phase_ == Phase::running; }
    // Whether the descriptor belongs to this, and then takes note of its event.
    bool event(int fd);
    // When progress() must be called although no event has come; UINT64_MAX: never.
    std::uint64_t deadline_ns() const { return stopping_ ? 0 : deadline_ns_; }
    // What its kernels print.
    KernelOutput& output() { return output_; }

    // Starts no more jobs; existing ones end with `reason`.
    void stop(Status reason);
    bool closed();

  private:
    static constexpr std::size_t max_pieces = 4;
    // The most runs sent to the host. Their records, of up to 16 KiB each, have to fit into its socket.
    static constexpr std::size_t max_sent = 4;
    enum class Kind : std::uint8_t { load, run, unload };
    enum class Phase : std::uint8_t { waiting, loading, copying_in, running, copying_out };

    struct LoadedKernel {
        std::string path, symbol;
        std::uint64_t limit_ns = 0;  // of a run; 0: none
        bool loaded = false;         // in the current host
    };
    struct Placed {
        engine::KernelBuffer buffer;
        kernel_host::Buffer place;
        bool copied = false;
    };
    struct KernelJob {
        Kind kind = Kind::run;
        std::uint64_t kernel = 0;
        std::vector<Placed> buffers;
        bool copies = false;       // some of them need copies
        std::uint64_t number = 0;  // of the host's answer
        std::vector<std::byte> arguments;
        Completion* done = nullptr;
        Answer answer;
    };
    struct KernelPiece : Completion {
        KernelJobs* jobs = nullptr;
        bool busy = false;
    };

    bool step();
    bool start();
    bool ensure_host(std::string& problem);
    bool place_buffers();
    bool reserve(std::uint64_t bytes);
    bool copy(bool in);
    bool copied() const;
    bool may_send_ahead() const;
    void send_run(KernelJob& job);
    void set_deadline();
    void begin_trace();
    void end_trace();
    void check_deadline();
    void take_answers();
    void on_answer(const kernel_host::Answer& answer);
    void host_lost();
    void over(Status status, const std::string& why = {});
    void fail_queue(Status status);

    const kernel_host::HostConfig config_;
    const std::uint32_t seconds_;
    const Clock& clock_;
    const int epoll_;
    memory::SessionMemory& memory_;
    KernelTexts& texts_;
    KernelOutput output_;
    const std::string client_;

    std::unique_ptr<kernel_host::KernelHost> host_;
    std::unordered_map<std::uint64_t, LoadedKernel> kernels_;
    std::unordered_set<std::uint64_t> mapped_;  // regions that the host has mapped
    std::vector<std::uint64_t> gone_;           // mapped regions to report to it as gone when it is idle
    memory::File arena_file_;
    memory::Mapping arena_;
    bool arena_known_ = false;  // to the host

    std::deque<KernelJob> queue_;  // the first one is active unless phase_ is waiting
    Phase phase_ = Phase::waiting;
    std::size_t sent_ = 0;  // runs at the queue's front that the host has; > 0 only while running
    std::uint64_t number_ = 0;
    std::array<KernelPiece, max_pieces> pieces_;
    std::size_t pieces_busy_ = 0;
    std::size_t copy_at_ = 0;  // buffer
    std::uint64_t copy_offset_ = 0;
    Status copy_status_ = Status::ok;
    bool event_ = false;
    std::uint64_t deadline_ns_ = UINT64_MAX;  // of the front job, while the host has it
    bool stopping_ = false;                   // the host was told to stop, because that time has passed
    std::uint64_t exceeded_ns_ = 0;           // the limit for which the host was killed
    Status stopped_ = Status::ok;
    std::uint64_t traced_ = 0;  // number of the front run in the trace, while the host has it
};

}  // namespace offpath::proxy
