#include "transport/tcp/address.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <sstream>

namespace offpath::transport::tcp {
namespace {

constexpr char magic[4] = {'O', 'F', 'T', 'C'};
constexpr std::uint16_t address_version = 1;
constexpr std::size_t fixed_bytes = 4 + 2 + 2 + 16 + 1;
constexpr std::size_t ip_bytes = 1 + 16;
constexpr std::size_t checksum_bytes = 4;

std::uint32_t checksum(std::span<const std::byte> bytes) {
    std::uint32_t hash = 0x811c9dc5;
    for (std::byte byte : bytes)
        hash = (hash ^ std::to_integer<std::uint32_t>(byte)) * 0x01000193;
    return hash;
}

std::vector<std::string> split(const std::string& list) {
    std::vector<std::string> names;
    std::istringstream items(list);
    for (std::string item; std::getline(items, item, ',');)
        if (!item.empty()) names.push_back(item);
    if (names.size() == 1 && names.front() == "all") names.clear();
    return names;
}

}  // namespace

bool is_address(std::span<const std::byte> bytes) {
    return bytes.size() >= fixed_bytes && std::memcmp(bytes.data(), magic, sizeof magic) == 0;
}

std::vector<std::byte> encode(const Address& address) {
    std::vector<std::byte> bytes;
    for (char letter : magic)
        bytes.push_back(static_cast<std::byte>(letter));
    for (std::uint16_t field : {address_version, address.port}) {
        bytes.push_back(static_cast<std::byte>(field & 0xff));
        bytes.push_back(static_cast<std::byte>(field >> 8));
    }
    bytes.insert(bytes.end(), address.id.begin(), address.id.end());
    const std::size_t count = std::min(address.ips.size(), max_ips);
    bytes.push_back(static_cast<std::byte>(count));
    for (std::size_t i = 0; i < count; ++i) {
        bytes.push_back(static_cast<std::byte>(address.ips[i].six ? 6 : 4));
        bytes.insert(bytes.end(), address.ips[i].bytes.begin(), address.ips[i].bytes.end());
    }
    const std::uint32_t sum = checksum(bytes);
    for (unsigned i = 0; i < checksum_bytes; ++i)
        bytes.push_back(static_cast<std::byte>(sum >> (8 * i)));
    return bytes;
}

Status decode(std::span<const std::byte> bytes, Address& address, std::string& problem) {
    if (!is_address(bytes)) {
        problem = fmt::format("{} bytes that are no TCP transport's address", bytes.size());
        return Status::protocol;
    }
    const auto field = [&](std::size_t at) {
        return static_cast<std::uint16_t>(std::to_integer<unsigned>(bytes[at]) |
                                          std::to_integer<unsigned>(bytes[at + 1]) << 8);
    };
    if (field(4) != address_version) {
        problem =
            fmt::format("a TCP transport's address of version {}; this is {}", field(4), address_version);
        return Status::version;
    }
    Address made;
    made.port = field(6);
    std::copy_n(bytes.begin() + 8, made.id.size(), made.id.begin());
    const auto count = std::to_integer<std::size_t>(bytes[fixed_bytes - 1]);
    const std::size_t wanted = fixed_bytes + count * ip_bytes;
    std::uint32_t sum = 0;
    for (unsigned i = 0; i < checksum_bytes && bytes.size() == wanted + checksum_bytes; ++i)
        sum |= std::to_integer<std::uint32_t>(bytes[wanted + i]) << (8 * i);
    if (count > max_ips || bytes.size() != wanted + checksum_bytes || sum != checksum(bytes.first(wanted))) {
        problem = fmt::format("a damaged address of a TCP transport, {} bytes", bytes.size());
        return Status::protocol;
    }
    for (std::size_t i = 0; i < count; ++i) {
        const auto entry = bytes.subspan(fixed_bytes + i * ip_bytes, ip_bytes);
        Ip& ip = made.ips.emplace_back();
        ip.six = entry[0] == std::byte{6};
        std::copy_n(entry.begin() + 1, ip.bytes.size(), ip.bytes.begin());
    }
    address = std::move(made);
    return Status::ok;
}

Status find_ips(const std::string& devices, std::vector<Ip>& ips, std::string& names, std::string& problem) {
    const std::vector<std::string> wanted = split(devices);
    ifaddrs* first = nullptr;
    if (getifaddrs(&first) != 0) {
        problem = fmt::format("getifaddrs: {}", std::strerror(errno));
        return Status::system;
    }
    const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list(first, &freeifaddrs);
    std::vector<Ip> found, loopback;
    std::string found_names, loopback_names;
    for (const ifaddrs* at = first; at != nullptr; at = at->ifa_next) {
        if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
        const bool four = at->ifa_addr->sa_family == AF_INET;
        if (!four && at->ifa_addr->sa_family != AF_INET6) continue;
        sockaddr_storage storage{};
        std::memcpy(&storage, at->ifa_addr, four ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
        // A link-local address would also need the name of the peer's device.
        if (!four && IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<sockaddr_in6&>(storage).sin6_addr)) continue;
        const std::string name = at->ifa_name;
        if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), name) == wanted.end()) continue;
        const bool own = wanted.empty() && (at->ifa_flags & IFF_LOOPBACK) != 0;
        (own ? loopback : found).push_back(from_socket_address(storage));
        std::string& list_of_names = own ? loopback_names : found_names;
        if (list_of_names.find("/" + name) == std::string::npos)
            list_of_names += (list_of_names.empty() ? "tcp/" : " tcp/") + name;
    }
    ips = found.empty() ? loopback : found;
    names = found.empty() ? loopback_names : found_names;
    if (ips.size() > max_ips) ips.resize(max_ips);
    if (!ips.empty()) return Status::ok;
    problem = fmt::format("no network device with an address that is up (UCX_NET_DEVICES={})",
                          devices.empty() ? "all" : devices);
    return Status::unavailable;
}

socklen_t to_socket_address(const Ip& ip, std::uint16_t port, sockaddr_storage& storage) {
    storage = {};
    if (ip.six) {
        auto& six = reinterpret_cast<sockaddr_in6&>(storage);
        six.sin6_family = AF_INET6;
        six.sin6_port = htons(port);
        std::memcpy(&six.sin6_addr, ip.bytes.data(), 16);
        return sizeof six;
    }
    auto& four = reinterpret_cast<sockaddr_in&>(storage);
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    std::memcpy(&four.sin_addr, ip.bytes.data(), 4);
    return sizeof four;
}

Ip from_socket_address(const sockaddr_storage& storage) {
    Ip ip;
    const auto& six = reinterpret_cast<const sockaddr_in6&>(storage);
    if (storage.ss_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
        ip.six = true;
        std::memcpy(ip.bytes.data(), &six.sin6_addr, 16);
    } else if (storage.ss_family == AF_INET6) {
        std::memcpy(ip.bytes.data(), reinterpret_cast<const char*>(&six.sin6_addr) + 12, 4);
    } else {
        std::memcpy(ip.bytes.data(), &reinterpret_cast<const sockaddr_in&>(storage).sin_addr, 4);
    }
    return ip;
}

}  // namespace offpath::transport::tcp
