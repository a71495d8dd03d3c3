// DeviceLinks: the device's end of the link between hosts and a device that share no memory: commands and
// completions of channels, and staged transfers, as messages (wire.h) over a transport. One object a proxy;
// one DeviceLink a session, named by a token that only the two sides of the session know. Two endpoints lead
// to a client: one for short messages, one for payload, so that a command need not wait behind megabytes.
//
// Ownership: DeviceLinks owns the transport and must outlive its links; a link and the channel and transfers
// taken from it may end in any order. Threads: one, the proxy's. Completions of transfers are called in
// their own progress(), stop() and abandon() only, never in DeviceLinks::progress().
// Trust: a message with an unknown token, or that is none, is dropped and counted; one that breaks the rules
// of its session breaks that link, and its session ends.
#pragma once

#include "control/channel.h"
#include "memory/staged_transfers.h"
#include "transport/one_sided.h"
#include "transport/transport.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace offpath::link {

class DeviceLink {
  public:
    virtual ~DeviceLink() = default;

    // What this client is to pass to HostLink::connect.
    virtual std::vector<std::byte> address() const = 0;
    // Each once.
    virtual std::unique_ptr<control::ProxyChannel> take_channel() = 0;
    virtual std::unique_ptr<memory::StagedTransfers> take_transfers() = 0;

    // ok; peer_lost: the way to the client is gone; protocol: the client broke the rules. Then the session is
    // to be ended; `why` is for people.
    virtual Status health(std::string& why) const = 0;
    bool lost() const {
        std::string why;
        return health(why) != Status::ok;
    }
};

class DeviceLinks {
  public:
    struct Counters {
        std::uint64_t messages = 0;
        std::uint64_t foreign = 0;  // dropped: no message of a link, or an unknown token
        std::uint64_t bytes_to_device = 0, bytes_to_host = 0;
    };

    virtual ~DeviceLinks() = default;

    // The longest that a client gets.
    virtual std::vector<std::byte> address() const = 0;
    virtual std::string describe() const = 0;

    // Does not wait for the client, which drops what comes before it has connected: transfers may start once
    // its first command is here. Errors: invalid (sizes, token 0 or in use), protocol or version (not an
    // address), unavailable (no way leads there).
    virtual Status open(std::span<const std::byte> client_address, std::uint64_t token,
                        const control::ChannelSizes& sizes, std::unique_ptr<DeviceLink>& link,
                        std::string& problem) = 0;

    // Moves everything on without blocking; returns how much there was.
    virtual unsigned progress() = 0;
    // To sleep: arm() is ok if event_fd() turns readable at the next event, retry if there is something to
    // do.
    virtual int event_fd() const = 0;
    virtual Status arm() = 0;
    virtual Counters counters() const = 0;
};

// `one_sided` may be null: then completions are messages (rings.h).
std::unique_ptr<DeviceLinks> make_device_links(std::unique_ptr<transport::Transport> transport,
                                               std::unique_ptr<transport::OneSided> one_sided);

}  // namespace offpath::link
