// KernelHost: the process that runs the kernels of one client, as its proxy sees it. It has no descriptors
// but its socket and what it is sent, belongs to a process group of its own, and dies with its proxy.
// Ownership: the session's KernelJobs. Threads: the proxy's.
#pragma once

#include "base/file_descriptor.h"
#include "base/status.h"
#include "kernel_host/records.h"
#include "memory/file.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

namespace offpath::kernel_host {

struct HostConfig {
    std::string program;    // of the host: offpath-kernel-host
    std::vector<int> cpus;  // that it may run on; empty: as its parent
    std::string user;       // UID:GID, that it becomes; empty: as its parent
    bool own_symbols =
        false;  // a kernel must be a symbol of the library that was named, not of one that it needs
};

class KernelHost {
  public:
    static Status start(const HostConfig& config, std::unique_ptr<KernelHost>& host, std::string& problem);
    // Kills it, and waits for its end unless reap() has seen that.
    ~KernelHost();
    KernelHost(const KernelHost&) = delete;
    KernelHost& operator=(const KernelHost&) = delete;

    // Readable when there is an answer, or the host has ended.
    int fd() const { return socket_.get(); }
    pid_t pid() const { return pid_; }
    // Whether there are answers that nobody has asked for yet. One load; tells nothing of the host's end.
    bool answered() const;
    // peer_lost: it has ended. The descriptors are copied.
    Status send(const Request& request, std::span<const int> descriptors = {});
    // retry: there is none; peer_lost: it has ended, or says what it must not.
    Status receive(Answer& answer);

    void kill() const;
    // How it ended, for people; empty: it has not.
    std::string reap();
    // The same, after killing it.
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
