// EndpointFiles: the files by which clients find a daemon: <directory>/<host>.sock and <host>.pid, and
// <host>.port if it also listens to other systems. The pid file is locked for the daemon's life. A second
// daemon is therefore refused, while files left by a crashed one are replaced. A successor takes the place of
// a daemon that still lives by renaming its own files over those of that daemon. The files are removed at the
// end, unless they belong to a successor by then.
#pragma once

#include "control/socket.h"

#include <sys/types.h>

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
    // As create(), but takes the place of a daemon that serves here, if there is one. A client that connects
    // meanwhile reaches one of the two. `predecessor`: the process of that daemon, or 0.
    Status replace(const std::string& directory, pid_t& predecessor, std::string& problem);
    // Must follow create().
    Status write_port(std::uint16_t port, std::string& problem);
    void remove();

    int listener() const { return listener_.get(); }
    const std::string& path() const { return socket_path_; }

  private:
    void name(const std::string& directory);
    Status lock(std::string& problem);
    Status write_pid(int file, const std::string& path, std::string& problem);
    bool are_ours() const;

    std::string socket_path_, pid_path_, port_path_;
    FileDescriptor pid_file_, listener_;
};

}  // namespace offpath::proxy
