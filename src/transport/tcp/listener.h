// Listener: the socket at which a TCP transport is connected to. It stops accepting while there are no
// descriptors, and tries again when one has been closed, and now and then, since others close them too.
// Ownership: its transport, in whose epoll set it stands with a null pointer. Threads: one.
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
    // -1: nobody waits, or there is no room. `strict`: only at these addresses.
    int accept(const std::vector<Ip>& ips, bool strict);
    // The last accept() had no descriptor.
    bool full() const { return full_; }
    // Nothing is accepted for now.
    void pause();
    bool paused() const { return paused_; }
    // A descriptor has been closed.
    void room_again();
    // Of every round.
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
