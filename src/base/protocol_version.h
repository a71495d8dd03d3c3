// The version of everything that libraries, daemons and proxies say to each other: messages of the control
// socket, commands, messages between engines, and what the ranks of a job exchange when they attach. It grows
// with every change of one of them, so only equal versions work together. Every side checks it before it
// reads anything else of the other one.
#pragma once

#include <cstdint>

namespace offpath {

constexpr std::uint16_t protocol_version = 21;

}  // namespace offpath
