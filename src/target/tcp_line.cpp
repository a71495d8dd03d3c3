#include "target/tcp_line.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace offpath::target {
namespace {

bool nothing_now(int error) {
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

// No TCP_USER_TIMEOUT: it would also end the connection of a program that does not read for a while. What it
// would find, Answers finds by the beats that are missing.
void notice_silence(int socket) {
    const int on = 1, idle_s = 2, interval_s = 1, probes = TcpLine::silence_s - idle_s;
    setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

}  // namespace

Status TcpLine::open(FileDescriptor socket, std::unique_ptr<TcpLine>& line) {
    FileDescriptor epoll(epoll_create1(EPOLL_CLOEXEC)), event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!epoll || !event) return Status::system;
    const int one = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    notice_silence(socket.get());
    fcntl(socket.get(), F_SETFL, fcntl(socket.get(), F_GETFL) | O_NONBLOCK);
    epoll_event wanted{};
    wanted.events = EPOLLIN | EPOLLONESHOT;
    wanted.data.fd = socket.get();
    epoll_event woken{};
    woken.events = EPOLLIN | EPOLLET;
    woken.data.fd = event.get();
    if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, socket.get(), &wanted) != 0 ||
        epoll_ctl(epoll.get(), EPOLL_CTL_ADD, event.get(), &woken) != 0)
        return Status::system;
    line.reset(new TcpLine(std::move(socket), std::move(epoll), std::move(event)));
    return Status::ok;
}

std::size_t TcpLine::write(std::span<const std::byte> data) {
    const ssize_t sent = send(socket_.get(), data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) return static_cast<std::size_t>(sent);
    if (nothing_now(errno))
        wants_room_ = true;
    else
        lose(errno);
    return 0;
}

void TcpLine::lose(int error) {
    int none = 0;
    // These say that the other process has ended, and nothing about the connection.
    if (error != EPIPE && error != ECONNRESET) error_.compare_exchange_strong(none, error);
    lost_ = true;
}

std::string TcpLine::cause() const {
    const int error = error_.load();
    return error != 0 ? std::strerror(error) : "";
}

bool TcpLine::drained() {
    int waiting = 0;
    return ioctl(socket_.get(), SIOCOUTQ, &waiting) == 0 && waiting == 0;
}

std::size_t TcpLine::read(std::span<std::byte> room) {
    const ssize_t got = recv(socket_.get(), room.data(), room.size(), MSG_DONTWAIT);
    if (got > 0) return static_cast<std::size_t>(got);
    if (got == 0)
        lost_ = true;
    else if (!nothing_now(errno))
        lose(errno);
    return 0;
}

bool TcpLine::readable() {
    // poll() would report a connection that has ended as readable forever.
    char byte;
    return recv(socket_.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) > 0;
}

void TcpLine::arm(std::uint32_t events) {
    epoll_event wanted{};
    wanted.events = events;
    wanted.data.fd = socket_.get();
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket_.get(), &wanted);
}

void TcpLine::attend() {
    if (!attended_.exchange(true)) arm(0);
}

void TcpLine::leave() {
    if (attended_.exchange(false)) arm(EPOLLIN | EPOLLONESHOT);
}

void TcpLine::sleep(std::uint64_t limit_ns) {
    if (wants_room_.exchange(false))
        arm(EPOLLIN | EPOLLOUT | EPOLLONESHOT);
    else if (!attended_)
        arm(EPOLLIN | EPOLLONESHOT);
    epoll_event event;
    const int ms = static_cast<int>(std::min<std::uint64_t>(limit_ns / 1'000'000 + 1, 1000));
    epoll_wait(epoll_.get(), &event, 1, ms);
}

void TcpLine::wake() {
    const std::uint64_t one = 1;
    (void)!::write(event_.get(), &one, sizeof one);
}

void TcpLine::hang_up() {
    shutdown(socket_.get(), SHUT_RDWR);
}

}  // namespace offpath::target
