// RemoteListener: accepts clients on other systems: a TCP socket, and the handshakes in which clients prove
// that they know the job's secret (control/authentication.h). Before that proof a client costs one
// descriptor, a few hundred bytes and at most some seconds. It learns only the protocol's version and a
// random number. It delays no other client: everything is non-blocking, and the handshakes are bounded in
// number (the oldest is dropped), time, bytes and log lines.
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
    // `ticket_seconds`: for how long a job's secret admits its clients. Errors: invalid, system, with
    // `problem`.
    Status open(const control::TcpAddress& address, control::Key key, std::uint64_t ticket_seconds,
                std::string& problem);
    bool listening() const { return static_cast<bool>(listener_); }
    std::uint16_t port() const { return port_; }
    const std::string& name() const { return name_; }

    // Accepts nobody from now on. Handshakes that have begun go on.
    void stop_listening();
    bool has_handshakes() const { return !handshakes_.empty(); }

    // Readable when there is something to serve.
    int event_fd() const { return epoll_.get(); }
    // Serves what has arrived. `take` receives the clients that have proved that they know the secret.
    void serve(std::uint64_t now_ns, const std::function<void(Newcomer)>& take);
    // Ends handshakes that have timed out. Call it periodically while timeout_ms() is not -1.
    void expire(std::uint64_t now_ns);
    int timeout_ms() const { return handshakes_.empty() && (accepting_ || !listener_) ? -1 : 250; }

  private:
    struct RemoteHandshake {
        control::MessageSocket socket;
        control::Nonce nonce{};
        std::uint64_t deadline_ns = 0;
    };
    using Handshakes = std::list<RemoteHandshake>;  // the oldest first

    void accept_all(std::uint64_t now_ns);
    void accept_again(bool accepting);
    // True: the client is accepted, and `newcomer` is set.
    bool check(RemoteHandshake& handshake, std::uint64_t now_ns, bool& over, Newcomer& newcomer);
    void refused(const RemoteHandshake& handshake, const std::string& why, std::uint64_t now_ns);
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
