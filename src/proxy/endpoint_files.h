// EndpointFiles: what makes a daemon findable: <directory>/<host>.sock and <host>.pid, and <host>.port where
// it also listens to other systems. The pid file carries a lock for as long as the daemon lives, so a second
// daemon is refused, while files that a crashed one left behind are replaced. The files are removed at the
// end.
#pragma once

#include "control/socket.h"

#include <cstdint>
#include <string>

namespace offpath::proxy {

class EndpointFiles {
  public:
    EndpointFiles() = default;
    ~EndpointFiles() { remove(); }
    EndpointFiles(const EndpointFiles&) = delete;
    EndpointFiles& operator=(const EndpointFiles&) = delete;

    // Errors: unavailable (another daemon serves here), system, invalid (path too long).
    Status create(const std::string& directory, std::string& problem);
    // After create().
    Status write_port(std::uint16_t port, std::string& problem);
    void remove();

    int listener() const { return listener_.get(); }
    const std::string& path() const { return socket_path_; }

  private:
    Status lock(std::string& problem);

    std::string socket_path_, pid_path_, port_path_;
    FileDescriptor pid_file_, listener_;
};

}  // namespace offpath::proxy
