// The unix socket between clients and a daemon: SOCK_SEQPACKET, with descriptors in messages and the peer's
// credentials from the kernel. Calls log nothing; they return what happened.
#pragma once

#include "base/file_descriptor.h"
#include "base/status.h"
#include "control/messages.h"

#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

namespace offpath::control {

struct Credentials {
    pid_t pid = 0;
    uid_t uid = 0;
};

// The socket is <directory>/<host name>.sock; the daemon's other files are in the same directory.
std::string host_name();
std::string socket_path(const std::string& directory);
std::string pid_path(const std::string& directory);
std::string port_path(const std::string& directory);

// Makes the directory, mode 0700, if it does not exist. access: it has another owner, or others may change
// its contents and could place links where the daemon writes. system: it cannot be made.
Status own_directory(const std::string& directory, std::string& problem);

// invalid: the path is too long for a socket. unavailable: no process listens there. system: any other error.
// `problem` says which, with errno's text.
Status connect_to(const std::string& path, FileDescriptor& socket, std::string& problem);
// Binds and listens, mode 0600. The socket is non-blocking.
Status listen_at(const std::string& path, FileDescriptor& socket, std::string& problem);
Status peer_credentials(int socket, Credentials& credentials);
// A pidfd of the process that connected; readable when that process has ended. Empty where the process is not
// visible, or the kernel has no pidfds.
FileDescriptor peer_process(int socket);

// retry: would block. peer_lost: the other side is gone.
Status send_message(int socket, const Message& message, std::span<const int> descriptors = {});

struct Received {
    std::vector<std::byte> bytes;
    std::vector<FileDescriptor> descriptors;
    std::string problem;  // set by MessageSocket: what was wrong with the message
};
// Does not block. retry: nothing is there. peer_lost: end of file. protocol: too long, or too many
// descriptors.
Status receive_bytes(int socket, Received& received);
// The same, but waits up to `timeout_ms` and decodes the message. unavailable: nothing came in time.
Status receive_message(int socket, int timeout_ms, Message& message, std::vector<FileDescriptor>& descriptors,
                       std::string& problem);
// Whether the other side has closed the socket. Does not block and consumes nothing.
bool peer_closed(int socket);

}  // namespace offpath::control
