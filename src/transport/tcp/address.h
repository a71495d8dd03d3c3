// The address that a TCP transport hands out, and the IP addresses of this machine. Encoding, little endian:
//   magic "OFTC", version u16, port u16 (0: does not listen), id (16 random bytes), count u8, then for each
//   IP address: the byte 4 or 6 and 16 bytes (of which IPv4 uses the first 4); checksum u32 (FNV-1a).
// Threads: any.
#pragma once

#include "base/status.h"

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace offpath::transport::tcp {

constexpr std::size_t max_ips = 8;

using Id = std::array<std::byte, 16>;

struct Ip {
    bool six = false;
    std::array<std::byte, 16> bytes{};
    friend bool operator==(const Ip&, const Ip&) = default;
};

struct Address {
    Id id{};
    std::uint16_t port = 0;
    std::vector<Ip> ips;
};

bool is_address(std::span<const std::byte> bytes);
std::vector<std::byte> encode(const Address& address);
// Errors: protocol or version, with `problem`.
Status decode(std::span<const std::byte> bytes, Address& address, std::string& problem);

// Finds the addresses of the listed devices that are up. With an empty list it takes all devices except
// loopback, or loopback when there is no other. unavailable with `problem`: there are none.
Status find_ips(const std::string& devices, std::vector<Ip>& ips, std::string& names, std::string& problem);

socklen_t to_socket_address(const Ip& ip, std::uint16_t port, sockaddr_storage& storage);
Ip from_socket_address(const sockaddr_storage& storage);

}  // namespace offpath::transport::tcp
