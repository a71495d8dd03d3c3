#include "transport/tcp/listener.h"

#include "base/log.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace offpath::transport::tcp {
namespace {

constexpr int backlog = 512;
constexpr std::chrono::milliseconds pause_time{100};

// Binds to all addresses of both kinds; without IPv6, to those of IPv4.
int bind_any() {
    for (const bool six : {true, false}) {
        const int made = socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (made < 0) continue;
        const int off = 0;
        if (six) (void)setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        sockaddr_storage any{};
        Ip ip;
        ip.six = six;
        const socklen_t length = to_socket_address(ip, 0, any);
        if (bind(made, reinterpret_cast<sockaddr*>(&any), length) == 0) return made;
        ::close(made);
    }
    return -1;
}

}  // namespace

Status Listener::open(int epoll, std::uint16_t& port, std::string& problem) {
    socket_ = bind_any();
    sockaddr_storage bound{};
    socklen_t length = sizeof bound;
    epoll_event event{};
    event.events = EPOLLIN;
    if (socket_ < 0 || listen(socket_, backlog) != 0 ||
        getsockname(socket_, reinterpret_cast<sockaddr*>(&bound), &length) != 0 ||
        epoll_ctl(epoll, EPOLL_CTL_ADD, socket_, &event) != 0) {
        problem = fmt::format("cannot listen for links: {}", std::strerror(errno));
        return Status::system;
    }
    epoll_ = epoll;
    port = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(bound).sin_port);
    return Status::ok;
}

int Listener::accept(const std::vector<Ip>& ips, bool strict) {
    full_ = false;
    while (socket_ >= 0) {
        const int made = accept4(socket_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (made < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
            full_ = true;
            return -1;
        }
        if (made < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return -1;
        if (made < 0) continue;
        sockaddr_storage here{};
        socklen_t length = sizeof here;
        if (!strict || (getsockname(made, reinterpret_cast<sockaddr*>(&here), &length) == 0 &&
                        std::find(ips.begin(), ips.end(), from_socket_address(here)) != ips.end())) {
            complained_ = false;
            return made;
        }
        ::close(made);
    }
    return -1;
}

void Listener::pause() {
    if (!std::exchange(complained_, true))
        log::error(Code::resources, "no descriptors for new links; they wait");
    epoll_ctl(epoll_, EPOLL_CTL_DEL, socket_, nullptr);
    paused_ = true;
    again_ = std::chrono::steady_clock::now() + pause_time;
}

void Listener::room_again() {
    if (!std::exchange(paused_, false) || socket_ < 0) return;
    epoll_event event{};
    event.events = EPOLLIN;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, socket_, &event);
}

void Listener::close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

}  // namespace offpath::transport::tcp
