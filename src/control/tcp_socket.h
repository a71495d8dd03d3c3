// TCP for remote attach: addresses as people write them, listening, connecting with a timeout. Calls log
// nothing; `problem` says what happened and what is accepted. Threads: any.
#pragma once

#include "base/file_descriptor.h"
#include "base/status.h"

#include <cstdint>
#include <string>

namespace offpath::control {

constexpr std::uint16_t default_tcp_port = 7471;

struct TcpAddress {
    std::string host;
    std::uint16_t port = default_tcp_port;
    friend bool operator==(const TcpAddress&, const TcpAddress&) = default;
};
std::string to_string(const TcpAddress& address);

// Accepts "10.0.0.2", "node7-dpu:7471", "[fd00::2]", "[fd00::2]:7471". invalid: anything else.
Status parse_tcp_address(const std::string& text, TcpAddress& address, std::string& problem);

// With port 0 the system chooses. `port` returns the port in use. The socket is non-blocking.
Status listen_tcp(const TcpAddress& address, FileDescriptor& socket, std::uint16_t& port,
                  std::string& problem);
// unavailable: the host, or the name service, did not answer within the timeout for both. The socket is
// non-blocking.
Status connect_tcp(const TcpAddress& address, int timeout_ms, FileDescriptor& socket, std::string& problem);

// A text for people, e.g. "10.0.0.2:45678".
std::string tcp_peer_name(int socket);

}  // namespace offpath::control
