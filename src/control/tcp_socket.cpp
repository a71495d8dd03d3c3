#include "control/tcp_socket.h"

#include "base/own_thread.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>

namespace offpath::control {
namespace {

using Clock = std::chrono::steady_clock;
using Found = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

constexpr auto listen_patience = std::chrono::seconds(8);

// The result of a look-up. The thread that asks and the thread that looks up share it, since either may end
// first.
struct LookUp {
    std::mutex mutex;
    std::condition_variable over;
    bool is_over = false;
    int error = 0, system_error = 0;
    Found found{nullptr, &freeaddrinfo};
};

void ask(const TcpAddress& address, int flags, LookUp& result) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags | AI_NUMERICSERV;
    addrinfo* first = nullptr;
    const int error = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &first);
    const int system_error = errno;
    std::lock_guard lock(result.mutex);
    result.found.reset(error == 0 ? first : nullptr);
    result.error = error;
    result.system_error = system_error;
    result.is_over = true;
    result.over.notify_all();
}

// A resolver that does not answer would block us for as long as its configuration says. So another thread
// asks it, and is left behind when the time is over.
bool ask_until(Clock::time_point end, const TcpAddress& address, int flags,
               const std::shared_ptr<LookUp>& result) {
    try {
        start_own_thread([=] { ask(address, flags, *result); }).detach();
    } catch (const std::system_error&) {
        ask(address, flags, *result);
    }
    std::unique_lock lock(result->mutex);
    return result->over.wait_until(lock, end, [&] { return result->is_over; });
}

Status look_up(const TcpAddress& address, int flags, Clock::time_point end, Found& found,
               std::string& problem) {
    const auto result = std::make_shared<LookUp>();
    ask(address, flags | AI_NUMERICHOST, *result);
    if (result->error == EAI_NONAME) {
        result->is_over = false;
        if (!ask_until(end, address, flags, result)) {
            problem = fmt::format("address '{}': the name service does not answer", address.host);
            return Status::unavailable;
        }
    }
    if (result->error != 0) {
        problem = fmt::format(
            "address '{}': {}", address.host,
            result->error == EAI_SYSTEM ? std::strerror(result->system_error) : gai_strerror(result->error));
        return Status::unavailable;
    }
    found = std::move(result->found);
    return Status::ok;
}

int finish_connect(int fd, Clock::time_point end) {
    while (true) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
        pollfd entry{fd, POLLOUT, 0};
        const int ready = poll(&entry, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return ready == 0 ? ETIMEDOUT : errno;
        int error = 0;
        socklen_t length = sizeof error;
        return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
    }
}

}  // namespace

std::string to_string(const TcpAddress& address) {
    const bool six = address.host.find(':') != std::string::npos;
    return six ? fmt::format("[{}]:{}", address.host, address.port)
               : fmt::format("{}:{}", address.host, address.port);
}

Status parse_tcp_address(const std::string& text, TcpAddress& address, std::string& problem) {
    const auto wrong = [&] {
        problem = fmt::format(
            "'{}' is no address; ADDR or ADDR:PORT is accepted, an IPv6 address in brackets, a port from 0 "
            "to "
            "65535 (default {})",
            text, default_tcp_port);
        return Status::invalid;
    };
    TcpAddress made;
    std::string rest;
    if (text.starts_with('[')) {
        const std::size_t end = text.find(']');
        if (end == std::string::npos) return wrong();
        made.host = text.substr(1, end - 1);
        rest = text.substr(end + 1);
    } else {
        const std::size_t colon = text.find(':');
        made.host = text.substr(0, colon);
        if (colon != std::string::npos) rest = text.substr(colon);
    }
    if (made.host.empty() || made.host.find_first_of(" \t\n/=,@[]") != std::string::npos) return wrong();
    if (!rest.empty()) {
        const char* const end = rest.data() + rest.size();
        const auto [stop, error] = std::from_chars(rest.data() + 1, end, made.port);
        if (rest[0] != ':' || rest.size() < 2 || error != std::errc() || stop != end) return wrong();
    }
    address = std::move(made);
    return Status::ok;
}

Status listen_tcp(const TcpAddress& address, FileDescriptor& socket, std::uint16_t& port,
                  std::string& problem) {
    Found found(nullptr, &freeaddrinfo);
    if (Status status = look_up(address, AI_PASSIVE, Clock::now() + listen_patience, found, problem);
        status != Status::ok)
        return status;
    FileDescriptor made(
        ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, found->ai_protocol));
    const int one = 1;
    sockaddr_storage bound{};
    socklen_t length = sizeof bound;
    if (!made || setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
        ::bind(made.get(), found->ai_addr, found->ai_addrlen) != 0 || ::listen(made.get(), 512) != 0 ||
        getsockname(made.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
        problem = fmt::format("cannot listen at {}: {}", to_string(address), std::strerror(errno));
        return Status::system;
    }
    port = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(bound).sin_port);
    socket = std::move(made);
    return Status::ok;
}

Status connect_tcp(const TcpAddress& address, int timeout_ms, FileDescriptor& socket, std::string& problem) {
    const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms);
    Found found(nullptr, &freeaddrinfo);
    if (Status status = look_up(address, 0, end, found, problem); status != Status::ok) return status;
    int error = EADDRNOTAVAIL;
    for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
        FileDescriptor made(
            ::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol));
        if (!made) {
            error = errno;
            continue;
        }
        error = ::connect(made.get(), at->ai_addr, at->ai_addrlen) == 0 ? 0 : errno;
        if (error == EINPROGRESS) error = finish_connect(made.get(), end);
        if (error == 0) {
            socket = std::move(made);
            return Status::ok;
        }
        if (error == ETIMEDOUT) break;  // the other addresses would take as long
    }
    problem = fmt::format("no offpathd answers at {} ({})", to_string(address), std::strerror(error));
    return Status::unavailable;
}

std::string tcp_peer_name(int socket) {
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    char host[NI_MAXHOST] = "", service[NI_MAXSERV] = "";
    if (getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &length) != 0 ||
        getnameinfo(reinterpret_cast<sockaddr*>(&peer), length, host, sizeof host, service, sizeof service,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return "somebody who has left";
    TcpAddress address;
    address.host = host;
    std::from_chars(service, service + std::strlen(service), address.port);
    return to_string(address);
}

}  // namespace offpath::control
