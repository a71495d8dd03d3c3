// RemoteListener: the door for clients on other systems: a TCP socket, and the handshakes behind it that
// prove who comes (control/authentication.h). Until a client has proved that it knows the job's secret it
// costs one descriptor, a few hundred bytes and some seconds at most, it learns the protocol's version and a
// random number, and nobody waits for it: everything is non-blocking, the number of handshakes is bounded
// (the oldest gives way), and so are their time and bytes, and the lines that they cause in the log.
//
// Ownership: the daemon. Threads: the daemon's main thread.
#pragma once

#include "base/log_limit.h"
#include "control/authentication.h"
#include "control/message_socket.h"
#include "control/tcp_socket.h"
#include "proxy/newcomer.h"

#include <cstdint>
#include <functional>
#include <list>
#include <string>

namespace offpath::proxy {

class RemoteListener {
  public:
    // invalid, system: with `problem`.
    // `ticket_seconds`: for how long a job's secret lets its clients in.
    Status open(const control::TcpAddress& address, control::Key key, std::uint64_t ticket_seconds,
                std::string& problem);
    bool listening() const { return static_cast<bool>(listener_); }
    std::uint16_t port() const { return port_; }
    const std::string& name() const { return name_; }

    // Readable when there is something to serve.
    int event_fd() const { return epoll_.get(); }
    // Serves what has come; `take` gets those who have proved themselves.
    void serve(std::uint64_t now_ns, const std::function<void(Newcomer)>& take);
    // Ends handshakes whose time is over. Call it every now and then while timeout_ms() is not -1.
    void expire(std::uint64_t now_ns);
    int timeout_ms() const { return handshakes_.empty() && accepting_ ? -1 : 250; }

  private:
    struct Handshake {
        control::MessageSocket socket;
        control::Nonce nonce{};
        std::uint64_t deadline_ns = 0;
    };
    using Handshakes = std::list<Handshake>;  // the oldest first

    void accept_all(std::uint64_t now_ns);
    void accept_again(bool accepting);
    // True: `newcomer` is one.
    bool check(Handshake& handshake, std::uint64_t now_ns, bool& over, Newcomer& newcomer);
    void refused(const Handshake& handshake, const std::string& why, std::uint64_t now_ns);
    void drop(Handshakes::iterator handshake);

    control::Key key_;
    FileDescriptor listener_, epoll_;
    std::uint16_t port_ = 0;
    std::string name_;
    bool accepting_ = false;
    Handshakes handshakes_;
    std::shared_ptr<Tickets> tickets_;
    LogLimit lines_;  // about refusals
};

}  // namespace offpath::proxy
