// DeviceLinks: the device's end of the links to hosts that share no memory with it. Commands and completions
// of channels, and staged transfers, travel as messages (wire.h) over a transport. Each proxy has one
// DeviceLinks, and each session one DeviceLink, named by a token that only its two sides know. Two endpoints
// lead to a client, one for short messages and one for payload, so that a command never waits behind
// megabytes.
//
// Ownership: DeviceLinks owns the transport and must outlive its links. A link, and the channel and transfers
// taken from it, may end in any order. Threads: one, the proxy's. Completions of transfers are called only in
// the transfers' own progress(), stop() and abandon(), never in DeviceLinks::progress().
//
// Trust: an invalid message, or one with an unknown token, is dropped and counted. A message that breaks the
// rules of its session breaks that link, and its session ends.
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

    // The bytes that this client passes to HostLink::connect.
    virtual std::vector<std::byte> address() const = 0;
    // Each may be called once.
    virtual std::unique_ptr<control::ProxyChannel> take_channel() = 0;
    virtual std::unique_ptr<memory::StagedTransfers> take_transfers() = 0;

    // peer_lost: the connection to the client is lost. protocol: the client broke the rules. On either the
    // session must be ended; `why` is for people.
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

    // The longest address that a client gets.
    virtual std::vector<std::byte> address() const = 0;
    virtual std::string describe() const = 0;

    // Does not wait for the client. The client drops what arrives before it has connected, so transfers may
    // start only after its first command has arrived. Errors: invalid (sizes, token 0 or in use), protocol or
    // version (not an address), unavailable (no route).
    virtual Status open(std::span<const std::byte> client_address, std::uint64_t token,
                        const control::ChannelSizes& sizes, std::unique_ptr<DeviceLink>& link,
                        std::string& problem) = 0;

    // Advances everything without blocking. Returns how many events it handled.
    virtual unsigned progress() = 0;
    // To sleep: arm() returns ok when event_fd() will become readable at the next event, and retry when there
    // is work already.
    virtual int event_fd() const = 0;
    virtual Status arm() = 0;
    virtual Counters counters() const = 0;
};

// `one_sided` may be null; completions are then messages (rings.h).
std::unique_ptr<DeviceLinks> make_device_links(std::unique_ptr<transport::Transport> transport,
                                               std::unique_ptr<transport::OneSided> one_sided);

}  // namespace offpath::link
