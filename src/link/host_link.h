// HostLink: the client's end of the link to a device that shares no memory with it: the channel, and the
// agent that serves staged transfers: a thread that sleeps until a message comes, sends what the device asks
// for straight from the program's memory, puts what it sends into it, and writes completions. Memory that is
// not there gives the device an access error, never a signal.
//
// Ownership: the client's attachment owns it; the channel must end before it. Threads: any, except that
// connect is called once. A posting thread sends by itself, a thread that spins in a wait moves the link on
// by itself (ClientChannel::begin_progress); everything else is the agent's, which costs nothing while
// nothing comes.
//
// The implementation is in a shared library of its own (load.h), since it brings UCX along.
#pragma once

#include "base/log.h"
#include "base/status.h"
#include "control/channel.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace offpath::transport {
class OneSided;
class Transport;
}  // namespace offpath::transport

namespace offpath::link {

struct HostLinkOptions {
    std::string devices;  // network devices, as UCX_NET_DEVICES; empty: that, else all
    // The library has a log of its own.
    std::string log_role = "offpath-link";
    log::Level log_level = log::Level::warn;
};

struct HostLinkCounters {
    double agent_cpu_s = 0;
    std::uint64_t wakeups = 0;                             // of the agent
    std::uint64_t bytes_to_device = 0, bytes_to_host = 0;  // staged
    std::uint64_t messages = 0;
    std::uint64_t foreign = 0;  // dropped: no message of a link, or another session's
};

class HostLink {
  public:
    virtual ~HostLink() = default;

    // For the hello: what the device connects to.
    virtual std::vector<std::byte> address() const = 0;
    // For people: e.g. "UCX 1.22.0 tcp/p0".
    virtual std::string describe() const = 0;
    // How completions come now: "messages" or "remote memory" (rings.h). Threads: any.
    virtual std::string rings() const = 0;

    // With what the welcome said. Does not wait for the device. Errors: invalid, protocol, version,
    // unavailable.
    virtual Status connect(std::span<const std::byte> device_address, std::uint64_t token,
                           const control::ChannelSizes& sizes,
                           std::unique_ptr<control::ClientChannel>& channel, std::string& problem) = 0;

    virtual HostLinkCounters counters() const = 0;
};

// Takes the transport over, and `one_sided`, which may be null, and starts the agent. Errors: system.
Status make_host_link(std::unique_ptr<transport::Transport> transport,
                      std::unique_ptr<transport::OneSided> one_sided, std::unique_ptr<HostLink>& link,
                      std::string& problem);

}  // namespace offpath::link
