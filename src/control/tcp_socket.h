// TCP as remote attach uses it: addresses as people write them, listening, connecting within a time. Calls
// log nothing; `problem` says what happened and what is accepted. Threads: any.
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

// "10.0.0.2", "node7-dpu:7471", "[fd00::2]", "[fd00::2]:7471". invalid: something else.
Status parse_tcp_address(const std::string& text, TcpAddress& address, std::string& problem);

// Port 0: the system chooses. `port`: the one that it is. The socket is non-blocking.
Status listen_tcp(const TcpAddress& address, FileDescriptor& socket, std::uint16_t& port,
                  std::string& problem);
// unavailable: nobody answered there, or the name service did not, within the time for both. The socket is
// non-blocking.
Status connect_tcp(const TcpAddress& address, int timeout_ms, FileDescriptor& socket, std::string& problem);

// "10.0.0.2:45678"; for people.
std::string tcp_peer_name(int socket);

}  // namespace offpath::control
