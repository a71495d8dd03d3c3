// Listener: the socket on which a TCP transport accepts connections. It stops accepting when the process runs
// out of descriptors. It tries again when the transport has closed one, and periodically, because other code
// closes descriptors too. Ownership: its transport, whose epoll set holds it with a null data pointer.
// Threads: one.
#pragma once

#include "transport/tcp/address.h"

#include <chrono>
#include <string>
#include <vector>

namespace offpath::transport::tcp {

class Listener {
  public:
    Listener() = default;
    ~Listener() { close(); }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    Status open(int epoll, std::uint16_t& port, std::string& problem);
    // Returns -1 when no connection waits or no descriptor is free. `strict`: accepts only connections to
    // these addresses.
    int accept(const std::vector<Ip>& ips, bool strict);
    // Whether the last accept() failed for want of a descriptor.
    bool full() const { return full_; }
    // Stops accepting for a while.
    void pause();
    bool paused() const { return paused_; }
    // Called when a descriptor has been closed.
    void room_again();
    // Called in every round.
    void tend() {
        if (paused_ && std::chrono::steady_clock::now() >= again_) room_again();
    }
    void close();

  private:
    int socket_ = -1, epoll_ = -1;
    bool full_ = false, paused_ = false;
    bool complained_ = false;
    std::chrono::steady_clock::time_point again_;
};

}  // namespace offpath::transport::tcp
