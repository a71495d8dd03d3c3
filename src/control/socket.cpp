#include "control/socket.h"

#include "base/passed_descriptors.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace offpath::control {
namespace {

constexpr std::size_t max_descriptors = 8;

Status make_address(const std::string& path, sockaddr_un& address, std::string& problem) {
    address = {};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
        problem = fmt::format(
            "socket path '{}' has {} characters; at most {} are accepted (choose a shorter "
            "directory)",
            path, path.size(), sizeof address.sun_path - 1);
        return Status::invalid;
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    return Status::ok;
}

}  // namespace

std::string host_name() {
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    return name;
}

std::string socket_path(const std::string& directory) {
    return directory + "/" + host_name() + ".sock";
}

std::string pid_path(const std::string& directory) {
    return directory + "/" + host_name() + ".pid";
}

std::string port_path(const std::string& directory) {
    return directory + "/" + host_name() + ".port";
}

Status own_directory(const std::string& directory, std::string& problem) {
    struct stat found {};
    if ((mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) || stat(directory.c_str(), &found) != 0) {
        problem = fmt::format("directory {}: {}", directory, std::strerror(errno));
        return Status::system;
    }
    if (!S_ISDIR(found.st_mode) || (found.st_uid != geteuid() && found.st_uid != 0)) {
        problem = fmt::format("{} must be a directory of this user or of root", directory);
        return Status::access;
    }
    if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (found.st_mode & S_ISVTX) == 0) {
        problem = fmt::format(
            "others may write to {}; take their right away (chmod go-w) or choose another directory",
            directory);
        return Status::access;
    }
    return Status::ok;
}

Status connect_to(const std::string& path, FileDescriptor& socket, std::string& problem) {
    sockaddr_un address;
    if (Status status = make_address(path, address, problem); status != Status::ok) return status;
    FileDescriptor made(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (!made) {
        problem = fmt::format("socket: {}", std::strerror(errno));
        return Status::system;
    }
    if (::connect(made.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
        const int error = errno;
        problem = fmt::format("no offpathd answers at {} ({})", path, std::strerror(error));
        return error == ENOENT || error == ECONNREFUSED || error == EAGAIN || error == EACCES ||
                       error == ENOTDIR
                   ? Status::unavailable
                   : Status::system;
    }
    socket = std::move(made);
    return Status::ok;
}

Status listen_at(const std::string& path, FileDescriptor& socket, std::string& problem) {
    sockaddr_un address;
    if (Status status = make_address(path, address, problem); status != Status::ok) return status;
    FileDescriptor made(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!made) {
        problem = fmt::format("socket: {}", std::strerror(errno));
        return Status::system;
    }
    // fchmod on the descriptor before bind gives the file its mode at once: it never has wider access.
    if (fchmod(made.get(), 0600) != 0 ||
        ::bind(made.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(made.get(), 512) != 0) {
        problem = fmt::format("cannot listen at {}: {}", path, std::strerror(errno));
        return Status::system;
    }
    socket = std::move(made);
    return Status::ok;
}

Status peer_credentials(int socket, Credentials& credentials) {
    ucred found{};
    socklen_t length = sizeof found;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &found, &length) != 0) return Status::system;
    credentials = {found.pid, found.uid};
    return Status::ok;
}

FileDescriptor peer_process(int socket) {
#ifdef SO_PEERPIDFD
    int made = -1;
    socklen_t length = sizeof made;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &made, &length) == 0) return FileDescriptor(made);
#endif
    Credentials peer;
    if (peer_credentials(socket, peer) != Status::ok || peer.pid <= 0) return FileDescriptor();
    return FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, peer.pid, 0)));
}

Status send_message(int socket, const Message& message, std::span<const int> descriptors) {
    std::vector<std::byte> bytes = encode_message(message);
    iovec part{bytes.data(), bytes.size()};
    DescriptorRoom<max_descriptors> room;
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (descriptors.size() > max_descriptors) return Status::invalid;
    pass_descriptors(descriptors, header, room);
    while (sendmsg(socket, &header, MSG_NOSIGNAL) < 0) {
        if (errno == EINTR) continue;
        if (errno == EAGAIN || errno == EWOULDBLOCK) return Status::retry;
        return errno == EPIPE || errno == ECONNRESET ? Status::peer_lost : Status::system;
    }
    return Status::ok;
}

Status receive_bytes(int socket, Received& received) {
    received.bytes.resize(max_message_bytes);
    received.descriptors.clear();
    iovec part{received.bytes.data(), received.bytes.size()};
    DescriptorRoom<max_descriptors> room;
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    accept_descriptors(header, room);
    ssize_t got;
    do {
        got = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        received.bytes.clear();
        if (errno == EAGAIN || errno == EWOULDBLOCK) return Status::retry;
        return errno == ECONNRESET ? Status::peer_lost : Status::system;
    }
    take_descriptors(header, [&](int descriptor) { received.descriptors.emplace_back(descriptor); });
    received.bytes.resize(static_cast<std::size_t>(got));
    if (got == 0) return Status::peer_lost;
    return (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 ? Status::protocol : Status::ok;
}

Status receive_message(int socket, int timeout_ms, Message& message, std::vector<FileDescriptor>& descriptors,
                       std::string& problem) {
    pollfd entry{socket, POLLIN, 0};
    int ready;
    do {
        ready = poll(&entry, 1, timeout_ms);
    } while (ready < 0 && errno == EINTR);
    if (ready == 0) {
        problem = fmt::format("no answer for {} s", timeout_ms / 1000);
        return Status::unavailable;
    }
    Received received;
    const Status status = receive_bytes(socket, received);
    if (status != Status::ok) {
        problem = status == Status::peer_lost ? "the other side closed the connection"
                                              : fmt::format("receiving: {}", to_string(status));
        return status;
    }
    descriptors = std::move(received.descriptors);
    return decode_message(received.bytes, message, problem);
}

bool peer_closed(int socket) {
    pollfd entry{socket, POLLIN | POLLRDHUP, 0};
    return poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

}  // namespace offpath::control
