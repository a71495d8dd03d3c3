// Listener: the socket at which a TCP transport is connected to. It stops accepting while there are no
// descriptors. Ownership: its transport, in whose epoll set it stands with a null pointer. Threads: one.
#pragma once

#include "transport/tcp/address.h"

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
    // -1: nobody waits. `strict`: only at these addresses.
    int accept(const std::vector<Ip>& ips, bool strict);
    // A descriptor has been closed.
    void room_again(int epoll);
    void close();

  private:
    int socket_ = -1, epoll_ = -1;
    bool paused_ = false;
};

}  // namespace offpath::transport::tcp
