// KernelHost: a proxy's handle on the process that runs the kernels of one client. That process has no
// descriptors except its socket and those that it is sent. It has its own process group and dies with its
// proxy. Ownership: the session's KernelJobs. Threads: the proxy's.
#pragma once

#include "base/file_descriptor.h"
#include "base/status.h"
#include "kernel_host/host_process.h"
#include "kernel_host/records.h"
#include "memory/file.h"

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
    pid_t pid() const { return pid_; }
    // Whether there are answers that have not been received. One load; it does not detect the process's end.
    bool answered() const;
    // Copies the descriptors. peer_lost: the process has ended.
    Status send(const Request& request, std::span<const int> descriptors = {});
    // retry: there is no answer. peer_lost: the process has ended, or broke the rules.
    Status receive(Answer& answer);

    void kill() const;
    // Tells people how the process ended; empty: it has not.
    std::string reap();
    // Kills the process, then does the same.
    std::string end();

  private:
    KernelHost(pid_t pid, FileDescriptor socket, memory::Mapping shared)
        : pid_(pid), socket_(std::move(socket)), shared_(std::move(shared)) {}
    std::string wait(int options);

    pid_t pid_;  // -1: gone
    FileDescriptor socket_;
    memory::Mapping shared_;
    std::uint64_t taken_ = 0;
};

}  // namespace offpath::kernel_host
