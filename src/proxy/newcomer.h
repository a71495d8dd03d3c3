// The identity of a proxy, and what a listener knows about a client that it passes on.
#pragma once

#include "control/authentication.h"
#include "control/message_socket.h"
#include "engine/engine.h"
#include "proxy/tickets.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace offpath::proxy {

struct Identity {
    engine::ProxyId id = 0;
    std::uint32_t index = 0;
    std::string node;
    std::string fabric;
    std::vector<std::byte> address;
    std::vector<std::byte> direct;  // of the direct port; empty: there is none
};

// A client on another system that has proved that it knows the job's secret.
struct RemotePeer {
    RemotePeer() = default;
    RemotePeer(const RemotePeer&) = delete;
    RemotePeer& operator=(const RemotePeer&) = delete;
    ~RemotePeer() { control::wipe(secret); }

    std::string address;  // for people
    control::Secret secret{};
    control::Nonce daemon_nonce{}, client_nonce{};
    std::vector<std::byte> link;  // address of its end of the link
};

struct Newcomer {
    control::MessageSocket socket;
    control::Credentials peer;  // remote: the pid that it claims
    control::Hello hello;
    std::unique_ptr<RemotePeer> remote;  // null: on this system
    TicketUse ticket;                    // for a remote client
};

}  // namespace offpath::proxy
