// DevicePeer: all state that a device keeps for one link: endpoints, commands, completions, staging. The
// link, its channel and its transfers share it. DeviceLinks keeps it until the transport holds none of its
// memory. Threads: the proxy's.
#pragma once

#include "link/command_stream.h"
#include "link/device_links.h"
#include "link/device_rings.h"
#include "link/device_staging.h"
#include "link/outgoing.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace offpath::link {

struct DevicePeer {
    DevicePeer(transport::Transport& transport, std::uint64_t token,
               const control::ChannelSizes& channel_sizes)
        : sizes(channel_sizes),
          out(transport),
          ends{transport, out, token, nullptr, nullptr},
          staging(ends),
          commands(channel_sizes.ring_bytes) {}

    // Only the first failure is kept.
    void fail(Status status, std::string reason) {
        if (health != Status::ok) return;
        health = status;
        why = std::move(reason);
    }
    Status look(std::string& reason) {
        if (staging.transport_status() != Status::ok)
            fail(Status::peer_lost, "the link to the host no longer takes messages");
        reason = why;
        return health;
    }
    void disconnect() {
        rings.reset();
        for (transport::Endpoint** endpoint : {&ends.control, &ends.bulk})
            if (*endpoint != nullptr) ends.transport.disconnect(std::exchange(*endpoint, nullptr));
    }
    // Whether the transport holds memory of this peer or of its transfers.
    bool held() const { return out.in_flight() > 0 || staging.fetching() > 0 || fetching > 0; }

    // Reports completions, and room for commands, to the client.
    void tell(std::span<const std::byte> items) {
        if (health != Status::ok || ends.control == nullptr) return;
        if (rings != nullptr && rings->ready()) {
            told = commands.taken();
            rings->put(items, told);
            return;
        }
        send(items);
    }
    // The same, in a message.
    void send(std::span<const std::byte> items) {
        if (health != Status::ok || ends.control == nullptr) return;
        Header header;
        header.kind = Kind::completions;
        header.token = ends.token;
        header.position = told = commands.taken();
        header.count = static_cast<std::uint32_t>(items.size() / wire_bytes<CompletionItem>);
        header.bytes = static_cast<std::uint32_t>(items.size());
        if (out.post(*ends.control, header, items) != Status::ok)
            fail(Status::peer_lost, "the link to the host no longer takes messages");
    }

    const control::ChannelSizes sizes;
    Outgoing out;
    DeviceStaging::Ends ends;
    DeviceStaging staging;
    CommandStream commands;
    std::unique_ptr<DeviceRings> rings;  // null: messages only
    std::uint64_t told = 0;              // bytes of commands that the client knows have been taken
    std::size_t fetching = 0;            // messages whose payload is being fetched
    Status health = Status::ok;
    std::string why;
};

}  // namespace offpath::link
