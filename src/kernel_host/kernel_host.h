// KernelHost: a proxy's handle on a process that runs kernels of one client. That process has no descriptors
// except its socket, two pipes for what kernels print, and those that it is sent. It has its own process
// group and dies with its proxy. Ownership: the session's KernelJobs. Threads: the proxy's.
#pragma once

#include "base/file_descriptor.h"
#include "base/status.h"
#include "kernel_host/host_process.h"
#include "kernel_host/records.h"
#include "memory/file.h"

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

namespace offpath::kernel_host {

class KernelHost {
  public:
    static Status start(const HostConfig& config, std::unique_ptr<KernelHost>& host, std::string& problem);
    // Kills the process, and waits for its end unless reap() has seen it.
    ~KernelHost();
    KernelHost(const KernelHost&) = delete;
    KernelHost& operator=(const KernelHost&) = delete;

    // Readable when there is an answer, or the process has ended.
    int fd() const { return socket_.get(); }
    pid_t pid() const { return pid_; }  // of its warden
    // Whether there are answers that have not been received. One load; it does not detect the process's end.
    bool answered() const;
    // The ends of the pipes that the process has as standard output and standard error; they do not block.
    // The caller gets them once.
    std::array<FileDescriptor, 2> take_output() { return std::move(output_); }
    // Copies the descriptors. peer_lost: the process has ended.
    Status send(const Request& request, std::span<const int> descriptors = {});
    // retry: there is no answer. peer_lost: the process has ended, or broke the rules.
    Status receive(Answer& answer);

    // Also what its kernels have started.
    void kill() const;
    // Tells the same processes to stop. They can still answer until has_stopped() is true.
    void stop();
    // Whether the process has stopped. True at most once for each stop().
    bool has_stopped();
    void go_on() const;
    // Tells people how the process ended; empty: it has not.
    std::string reap();
    // Kills the process, then does the same.
    std::string end();

  private:
    KernelHost(pid_t pid, FileDescriptor socket, memory::Mapping shared, std::array<FileDescriptor, 2> output)
        : pid_(pid), socket_(std::move(socket)), shared_(std::move(shared)), output_(std::move(output)) {}
    std::string wait(int options);

    pid_t pid_;  // -1: gone
    FileDescriptor socket_;
    memory::Mapping shared_;
    std::array<FileDescriptor, 2> output_;
    std::uint64_t taken_ = 0;
    std::uint32_t seen_stops_ = 0;
};

}  // namespace offpath::kernel_host
