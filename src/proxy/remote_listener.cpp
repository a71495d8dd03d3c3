#include "proxy/remote_listener.h"

#include "base/log.h"
#include "proxy/watch.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace offpath::proxy {
namespace {

constexpr std::size_t max_remote_handshakes = 256;
constexpr int accepts_per_round = 64;

}  // namespace

Status RemoteListener::open(const control::TcpAddress& address, control::Key key,
                            std::uint64_t ticket_seconds, std::string& problem) {
    epoll_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
    if (!epoll_) {
        problem = fmt::format("epoll: {}", std::strerror(errno));
        return Status::system;
    }
    if (Status status = control::listen_tcp(address, listener_, port_, problem); status != Status::ok)
        return status;
    name_ = control::to_string(control::TcpAddress{address.host, port_});
    key_ = std::move(key);
    tickets_ = std::make_shared<Tickets>(ticket_seconds);
    accept_again(true);
    return Status::ok;
}

void RemoteListener::accept_again(bool accepting) {
    if (accepting == accepting_) return;
    accepting_ = accepting;
    if (accepting) {
        watch(epoll_.get(), listener_.get());
    } else {
        epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
    }
}

void RemoteListener::stop_listening() {
    if (!listener_) return;
    accept_again(false);
    listener_.reset();
}

void RemoteListener::serve(std::uint64_t now_ns, const std::function<void(Newcomer)>& take) {
    epoll_event events[64];
    const int count = epoll_wait(epoll_.get(), events, 64, 0);
    bool knocked = false;
    for (int i = 0; i < count; ++i) {
        const int fd = events[i].data.fd;
        if (fd == listener_.get()) {
            knocked = true;
            continue;
        }
        const auto found = std::find_if(handshakes_.begin(), handshakes_.end(),
                                        [&](const RemoteHandshake& h) { return h.socket.fd() == fd; });
        if (found == handshakes_.end()) continue;
        bool over = false;
        Newcomer newcomer;
        if (check(*found, now_ns, over, newcomer)) {
            epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
            handshakes_.erase(found);
            take(std::move(newcomer));
        } else if (over) {
            drop(found);
        }
    }
    // Accept last, since new connections reuse the numbers of closed ones.
    if (knocked) accept_all(now_ns);
}

void RemoteListener::accept_all(std::uint64_t now_ns) {
    for (int i = 0; i < accepts_per_round; ++i) {
        FileDescriptor client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!client) {
            if (errno == EMFILE || errno == ENFILE) {
                log::error(Code::resources, "no descriptors left for new clients; they wait");
                accept_again(false);
            }
            return;
        }
        if (handshakes_.size() >= max_remote_handshakes) {
            refused(handshakes_.front(), "too many others knock at the same time", now_ns);
            drop(handshakes_.begin());
        }
        RemoteHandshake& handshake = handshakes_.emplace_back();
        handshake.socket = control::MessageSocket::over_tcp(std::move(client));
        handshake.nonce = control::draw_nonce();
        handshake.deadline_ns = now_ns + control::hello_timeout_ns;
        watch(epoll_.get(), handshake.socket.fd());
        if (is_error(handshake.socket.send(control::Challenge{handshake.nonce})))
            drop(std::prev(handshakes_.end()));
    }
}

bool RemoteListener::check(RemoteHandshake& handshake, std::uint64_t now_ns, bool& over, Newcomer& newcomer) {
    control::Received received;
    Status status = handshake.socket.receive_bytes(received);
    if (status == Status::retry) return false;
    over = true;
    if (status == Status::peer_lost || status == Status::system) {
        log::debug("{} connected and went away", control::tcp_peer_name(handshake.socket.fd()));
        return false;
    }
    control::Message message;
    std::string problem = received.problem;
    if (status == Status::ok) status = control::decode_message(received.bytes, message, problem);
    if (status == Status::version) {
        refused(handshake, problem, now_ns);
        (void)handshake.socket.send(control::Refusal{status, problem});
        return false;
    }
    auto* hello = std::get_if<control::RemoteHello>(&message);
    if (status != Status::ok || hello == nullptr) {
        refused(handshake, status != Status::ok ? problem : "its first message is no hello", now_ns);
        return false;
    }
    auto peer = std::make_unique<RemotePeer>();
    peer->secret = control::job_secret(key_, hello->hello.job_high, hello->hello.job_low, hello->issued);
    if (!control::same(hello->mac,
                       control::handshake_mac(peer->secret, handshake.nonce, hello->nonce, message))) {
        refused(handshake, "it does not know the key", now_ns);
        (void)handshake.socket.send(control::Refusal{Status::access, control::not_authenticated});
        return false;
    }
    if (status = tickets_->enter({hello->hello.job_high, hello->hello.job_low}, hello->hello.job_rank,
                                 hello->issued, static_cast<std::uint64_t>(time(nullptr)), newcomer.ticket,
                                 problem);
        status != Status::ok) {
        refused(handshake, problem, now_ns);
        (void)handshake.socket.send(control::Refusal{status, problem});
        return false;
    }
    peer->address = control::tcp_peer_name(handshake.socket.fd());
    peer->daemon_nonce = handshake.nonce;
    peer->client_nonce = hello->nonce;
    peer->link = std::move(hello->link);
    newcomer.hello = hello->hello;
    newcomer.hello.fabric = control::fabric_secret(peer->secret);
    newcomer.peer.pid = static_cast<pid_t>(hello->hello.pid);
    newcomer.socket = std::move(handshake.socket);
    newcomer.remote = std::move(peer);
    return true;
}

void RemoteListener::refused(const RemoteHandshake& handshake, const std::string& why, std::uint64_t now_ns) {
    if (!lines_.may_speak(now_ns)) return;
    log::warn(Code::refused, "{} was refused: {}{}", control::tcp_peer_name(handshake.socket.fd()), why,
              lines_.left_out());
}

void RemoteListener::drop(Handshakes::iterator handshake) {
    // Removed from the epoll set explicitly: a forked child may hold a copy of the descriptor.
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, handshake->socket.fd(), nullptr);
    handshakes_.erase(handshake);
}

void RemoteListener::expire(std::uint64_t now_ns) {
    while (!handshakes_.empty() && handshakes_.front().deadline_ns <= now_ns) {
        refused(handshakes_.front(),
                fmt::format("it did not say hello for {} s", control::hello_timeout_ns / 1'000'000'000),
                now_ns);
        drop(handshakes_.begin());
    }
    if (listener_) accept_again(true);
}

}  // namespace offpath::proxy
