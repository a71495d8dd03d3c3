// A transport over UCX or TCP, for use before the other side's choice is known. A host then continues with
// one of them; a device serves hosts on both. Threads: as Transport. Addresses: that of the only transport
// that a side has; or, for a host with both: magic "OFEI", length of UCX's u32, little endian, UCX's, TCP's.
#pragma once

#include "link/device_links.h"
#include "transport/one_sided.h"
#include "transport/transport.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace offpath::link {

struct BothAddresses {
    std::span<const std::byte> ucx, tcp;  // empty: not offered
};
std::vector<std::byte> join_addresses(const BothAddresses& addresses);
// Bytes without this form count as UCX's address, which UCX refuses.
BothAddresses split_addresses(std::span<const std::byte> bytes);

// Connects once, and continues with the transport that the address belongs to. Errors: system, with
// `problem`.
Status make_either_transport(std::unique_ptr<transport::Transport> ucx,
                             std::unique_ptr<transport::Transport> tcp,
                             std::unique_ptr<transport::Transport>& transport, std::string& problem);

// One of the two transports may be null. UCX serves the hosts that have it, and only they use `one_sided`,
// which may be null.
Status make_either_links(std::unique_ptr<transport::Transport> ucx, std::unique_ptr<transport::Transport> tcp,
                         std::unique_ptr<transport::OneSided> one_sided, std::unique_ptr<DeviceLinks>& links,
                         std::string& problem);

}  // namespace offpath::link
