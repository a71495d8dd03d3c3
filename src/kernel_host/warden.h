// The warden: a process between the daemon and a process that runs a client's code, the *host*. It runs no
// such code. Orphans of the host become its children, so it finds all processes that the host has left,
// however they have cut their ties (setsid, a double fork, closed descriptors). When the host ends, for
// whatever reason, it ends them, and then ends as the host did. It ends the host and them when
//   - the daemon ends, or asks for it (SIGTERM);
//   - the program ends, and the host has not ended itself within `grace`.
// By SIGUSR1 the daemon asks it to stop the host, and by SIGUSR2 to let it go on.
//
// It keeps the daemon's user, even if the host becomes another one, which then cannot send it signals.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include <sys/types.h>

namespace offpath::kernel_host {

constexpr auto grace = std::chrono::milliseconds(500);

struct Watched {
    // Descriptors that show the end of the program: pidfds, and sockets that are connected to it.
    std::vector<int> pidfds, sockets;
    // Counts how often all threads of the host have stopped because the daemon asked for it. Null: nobody
    // reads it. In memory that is shared with the daemon.
    std::atomic<std::uint32_t>* stops = nullptr;
};

// Makes the process a warden, and returns in its child, which is the host. `daemon`: the parent that it must
// have. False, in both: that one has ended already, or the system has no process left.
bool guard_host(pid_t daemon, const Watched& watched);

}  // namespace offpath::kernel_host
