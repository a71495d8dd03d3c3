// Both ends of a line in one process, over shared memory or TCP.
#pragma once

#include "target/shared_line.h"
#include "target/tcp_line.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>

namespace offpath::target {

struct Ends {
    std::unique_ptr<Line> program, host;
};

inline Ends shared_ends() {
    int sockets[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
    memory::File file;
    EXPECT_EQ(SharedLine::make_file(file), Status::ok);
    std::unique_ptr<SharedLine> program, host;
    EXPECT_EQ(SharedLine::open(SharedLine::Side::program, file, FileDescriptor(sockets[0]), program),
              Status::ok);
    EXPECT_EQ(SharedLine::open(SharedLine::Side::host, file, FileDescriptor(sockets[1]), host), Status::ok);
    return {std::move(program), std::move(host)};
}

inline Ends tcp_ends() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    const FileDescriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener.get(), 1), 0);
    EXPECT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
    FileDescriptor caller(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(caller.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    FileDescriptor called(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::unique_ptr<TcpLine> program, host;
    EXPECT_EQ(TcpLine::open(std::move(caller), program), Status::ok);
    EXPECT_EQ(TcpLine::open(std::move(called), host), Status::ok);
    return {std::move(program), std::move(host)};
}

}  // namespace offpath::target
