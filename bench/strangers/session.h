// A daemon's address, and a session with it whose commands are made by hand. Threads: one.
#pragma once

#include "control/message_socket.h"
#include "control/shared_channel.h"

#include <cstdint>
#include <memory>
#include <string>

namespace strangers {

struct Target {
    std::string directory, address, key_file;
};

// Throw std::runtime_error if the daemon cannot be reached.
offpath::FileDescriptor connect_locally(const Target& target);
offpath::FileDescriptor connect_over_tcp(const Target& target);

// Rank 0 of a job whose ranks are all at this rank's proxy, as it says.
class Session {
  public:
    // Throws std::runtime_error.
    Session(const Target& target, std::uint64_t job, std::uint32_t job_ranks = 1);
    // Posts a command and waits for room. False: the daemon has ended the session.
    bool post(const offpath::control::Command& command);
    void ring() { channel_->ring(); }
    // Waits until the completion of this slot is there. False: it does not come within some seconds.
    bool wait(std::uint32_t slot);
    offpath::control::ClientChannel& channel() { return *channel_; }
    offpath::control::MessageSocket& socket() { return socket_; }

  private:
    offpath::control::MessageSocket socket_;
    std::unique_ptr<offpath::control::ClientChannel> channel_;
};

}  // namespace strangers
