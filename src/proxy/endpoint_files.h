// EndpointFiles: the files by which clients find a daemon: <directory>/<host>.sock and <host>.pid, and
// <host>.port if it also listens to other systems. The pid file is locked for the daemon's life. A second
// daemon is therefore refused, while files left by a crashed one are replaced. The files are removed at the
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
    // Must follow create().
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
