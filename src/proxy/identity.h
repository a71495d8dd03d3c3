// Who a proxy is, and what the listener knows of a client that it passes on.
#pragma once

#include "control/messages.h"
#include "control/socket.h"
#include "engine/engine.h"

#include <cstdint>
#include <string>
#include <vector>

namespace offpath::proxy {

struct Identity {
    engine::ProxyId id = 0;
    std::uint32_t index = 0;
    std::string node;
    std::string fabric;
    std::vector<std::byte> address;
};

struct Newcomer {
    control::FileDescriptor socket;
    control::Credentials peer;
    control::Hello hello;
};

}  // namespace offpath::proxy
