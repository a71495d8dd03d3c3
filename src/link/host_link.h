// HostLink: the client's end of the link to a device that shares no memory with it: the channel, and the
// agent that serves staged transfers. The agent is a thread that sleeps until a message comes. It sends what
// the device requests straight from the program's memory, writes incoming data into that memory, and writes
// completions. Memory that is not mapped gives the device an access error, never a signal.
//
// Ownership: the client's attachment owns it; the channel must end before it. Threads: any, except that
// connect is called once. A posting thread sends by itself. A thread that spins in a wait makes progress by
// itself (ClientChannel::begin_progress). The agent does everything else, and uses no CPU while nothing
// arrives.
//
// The implementation is in a separate shared library (plugin/plugin_loader.h), because it depends on UCX.
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
    // The library has a separate log.
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

    // The address for the hello, to which the device connects.
    virtual std::vector<std::byte> address() const = 0;
    // A text for people, e.g. "UCX 1.22.0 tcp/p0".
    virtual std::string describe() const = 0;
    // How completions arrive now: "messages" or "remote memory" (rings.h). Threads: any.
    virtual std::string rings() const = 0;

    // Takes the values of the welcome. Does not wait for the device. Errors: invalid, protocol, version,
    // unavailable.
    virtual Status connect(std::span<const std::byte> device_address, std::uint64_t token,
                           const control::ChannelSizes& sizes,
                           std::unique_ptr<control::ClientChannel>& channel, std::string& problem) = 0;

    // A descriptor that becomes readable when the link is lost and this side has given up its end, so that
    // the device no longer reaches memory of this process by it. Borrowed.
    virtual int end_event() const = 0;
    // The device is lost, as the owner knows: the link is, too. Threads: any.
    virtual void give_up(const char* why) = 0;

    virtual HostLinkCounters counters() const = 0;
};

// Takes ownership of the transport and of `one_sided`, which may be null, and starts the agent. Errors:
// system.
Status make_host_link(std::unique_ptr<transport::Transport> transport,
                      std::unique_ptr<transport::OneSided> one_sided, std::unique_ptr<HostLink>& link,
                      std::string& problem);

}  // namespace offpath::link
