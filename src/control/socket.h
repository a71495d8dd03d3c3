// The unix socket between clients and a daemon: SOCK_SEQPACKET, descriptors beside the bytes, the peer's
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

// <directory>/<host name>.sock, and the daemon's other files beside it.
std::string host_name();
std::string socket_path(const std::string& directory);
std::string pid_path(const std::string& directory);
std::string port_path(const std::string& directory);

// Makes the directory, mode 0700, if it is not there. access: it belongs to somebody else or others may
// change what is in it, so that they could put links where the daemon writes; system: it cannot be made.
Status own_directory(const std::string& directory, std::string& problem);

// invalid: the path is too long for a socket; unavailable: nobody listens there; system otherwise. `problem`
// says which, with errno's text.
Status connect_to(const std::string& path, FileDescriptor& socket, std::string& problem);
// Binds and listens, mode 0600. The socket is non-blocking.
Status listen_at(const std::string& path, FileDescriptor& socket, std::string& problem);
Status peer_credentials(int socket, Credentials& credentials);
// A pidfd of the process that connected: readable when it has ended. None where the process cannot be seen
// from here, or the kernel has no pidfds.
FileDescriptor peer_process(int socket);

// retry: would block; peer_lost: the other side is gone.
Status send_message(int socket, const Message& message, std::span<const int> descriptors = {});

struct Received {
    std::vector<std::byte> bytes;
    std::vector<FileDescriptor> descriptors;
    std::string problem;  // of MessageSocket, which also says what came wrong
};
// Does not block. retry: nothing there; peer_lost: end of file; protocol: too long, or too many descriptors.
Status receive_bytes(int socket, Received& received);
// The same, waiting up to `timeout_ms`; then decoded. unavailable: nothing came in time.
Status receive_message(int socket, int timeout_ms, Message& message, std::vector<FileDescriptor>& descriptors,
                       std::string& problem);
// Whether the other side has closed the socket. Does not block and takes nothing.
bool peer_closed(int socket);

}  // namespace offpath::control
