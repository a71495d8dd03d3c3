// Connections that say nothing, and sessions that say what they must not. Threads: one.
#pragma once

#include "session.h"

#include "control/authentication.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace strangers {

// A quarter of them over TCP, where a daemon keeps at most 256 that have not said who they are.
class IdleConnections {
  public:
    IdleConnections(const Target& target, std::size_t count) : target_(target), wanted_(count) {}
    // Makes those again that the daemon has dropped.
    void tend();
    std::size_t open() const { return connections_.size(); }
    std::size_t opened() const { return opened_; }

  private:
    struct Idle {
        offpath::FileDescriptor socket;
        bool tcp;
    };
    const Target& target_;
    std::size_t wanted_, opened_ = 0, over_tcp_ = 0;
    std::vector<Idle> connections_;
};

// One kind after the other. Each waits for the daemon's answer, or for its end.
class Malformed {
  public:
    explicit Malformed(const Target& target);
    void send_next();
    unsigned sent() const { return sent_; }
    const std::map<std::string, unsigned>& by_kind() const { return by_kind_; }

  private:
    static void say(offpath::control::MessageSocket socket, std::span<const std::byte> bytes);
    void introduce_itself(bool with_the_key);
    void misuse_a_session();

    const Target& target_;
    offpath::control::Key key_;
    unsigned sent_ = 0;
    std::map<std::string, unsigned> by_kind_;
};

}  // namespace strangers
