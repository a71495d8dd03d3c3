// A process that runs a client's code on the device: how a daemon starts it, and how it gives up its rights.
// Used by the hosts of kernels and by those of target regions. Threads: any.
#pragma once

#include "base/status.h"
#include "kernel_host/warden.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

namespace offpath::kernel_host {

struct HostConfig {
    std::string program;    // the host's program
    std::vector<int> cpus;  // CPUs that it may run on; empty: those of its parent
    // The UID:GID that it becomes, for as long as this is kept; null: its parent's.
    std::shared_ptr<const std::string> user;
    bool own_symbols =
        false;  // a kernel must be a symbol of the library that was named, not of one that it needs
};

// The descriptors of a host begin here, in the order in which spawn_host was given them.
constexpr int first_host_fd = 3, most_host_fds = 8;

// Starts config.program, in a process group of its own, with the arguments PARENT CPUS USER and then
// `arguments`. It inherits `descriptors` and no others, and of the environment what host_environment() says.
// Where the environment names OFFPATH_HOST_RUNNER, that program starts it. `pid` is that of its warden
// (warden.h). unsupported, system: with `problem`.
Status spawn_host(const HostConfig& config, std::vector<std::string> arguments,
                  std::span<const int> descriptors, pid_t& pid, std::string& problem);

// Asks the warden to end all processes that it guards, and itself.
void kill_host(pid_t pid);
// Waits until the warden has ended, and reaps it. If it does not end soon, it is killed, and what it guarded
// is ended here. Returns how it ended, as waitpid does; 0: it was no child. `options`: of waitpid. False:
// WNOHANG, and it has not ended.
bool reap_host(pid_t pid, int options, int& status);
// From now on, orphans of a warden that has been killed become this process's children, and reap_host() ends
// them.
void adopt_orphans();

// What hosts have of the calling process's environment: what programs and their libraries need to run, and
// the settings of OpenMP, UCX and offpath. Nothing else, because it may be secret.
std::vector<std::string> host_environment();

// The host calls this first, with its own argument vector. It makes the process a warden and goes on in its
// child, which is the host: it is the first to go when memory runs out, becomes the user, gains no more
// rights, dies with its warden from then on, and runs on the CPUs. False, perhaps after a line on standard
// error: the host must end.
bool settle_host(char** arguments, const Watched& watched);

}  // namespace offpath::kernel_host
