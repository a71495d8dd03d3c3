// A process that runs a client's code on the device: how a daemon starts it, and how it gives up its rights.
// Used by the hosts of kernels and by those of target regions. Threads: any.
#pragma once

#include "base/status.h"

#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

namespace offpath::kernel_host {

struct HostConfig {
    std::string program;    // the host's program
    std::vector<int> cpus;  // CPUs that it may run on; empty: those of its parent
    std::string user;       // the UID:GID that it becomes; empty: its parent's
    bool own_symbols =
        false;  // a kernel must be a symbol of the library that was named, not of one that it needs
};

// The descriptors of a host begin here, in the order in which spawn_host was given them.
constexpr int first_host_fd = 3;

// Starts config.program, in a process group of its own, with the arguments PARENT CPUS USER and then
// `arguments`. It inherits `descriptors` and no others. Where the environment names
// OFFPATH_HOST_RUNNER, that program starts it. unsupported, system: with `problem`.
Status spawn_host(const HostConfig& config, std::vector<std::string> arguments,
                  std::span<const int> descriptors, pid_t& pid, std::string& problem);

// Waits for a host to end, as waitpid() does, and removes the file of shared memory by which LLVM's OpenMP
// library marks a process that uses it. The library removes it in exit(), which hosts do not call.
pid_t wait_for_host(pid_t pid, int options, int& status);

// The host calls this first, with its own argument vector. It is the first to go when memory runs out,
// becomes the user, dies with its parent from then on, and runs on the CPUs. False, after a line on standard
// error: the host must end.
bool settle_host(char** arguments);

}  // namespace offpath::kernel_host
