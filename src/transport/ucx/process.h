// Identifies the process of a peer, and watches the peers that this process can see. UCX notices the death of
// a shared-memory peer only once the connection is complete. The kernel reports it at once, through a pidfd.
#pragma once

#include <cstdint>

namespace offpath::transport::ucx {

struct Process {
    std::uint64_t random = 0;     // drawn once per process; a fork() keeps it, hence:
    std::uint64_t pid = 0;        // in its PID namespace
    std::uint64_t start = 0;      // clock ticks since boot, against reuse of the pid
    std::uint64_t boot = 0;       // hash of the kernel's boot id
    std::uint64_t pid_space = 0;  // inodes of its namespaces
    std::uint64_t ipc_space = 0;
    friend bool operator==(const Process&, const Process&) = default;
};

Process this_process();

// Threads: one.
class ProcessWatch {
  public:
    ProcessWatch();
    ~ProcessWatch();
    ProcessWatch(const ProcessWatch&) = delete;
    ProcessWatch& operator=(const ProcessWatch&) = delete;

    enum class Seen { alive, dead, not_visible };
    // alive: watched from now on; pass `pidfd` to forget() later. not_visible: the process is in other
    // namespaces or on another machine.
    Seen watch(const Process& process, void* token, int& pidfd);
    void forget(int pidfd);

    // The token of a process that has died, the same one until it is forgotten. Null: none.
    void* dead() const;
    // Readable while dead() has an answer. -1: the kernel has no pidfd, so nothing is watched.
    int fd() const { return epoll_; }
    bool any() const { return watched_ > 0; }

  private:
    int epoll_ = -1;
    int watched_ = 0;
    const Process self_ = this_process();
};

}  // namespace offpath::transport::ucx
