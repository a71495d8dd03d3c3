// Two ways at once, until it is known what the other side has: of a host, which then goes on with one of
// them; of a device, which serves hosts on both. Addresses: the one of the only way that a side has, or of a
// host both: magic "OFEI", length of UCX's u32, little endian, UCX's, TCP's. Threads: as Transport.
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
// What is not one of ours counts as UCX's, which refuses it.
BothAddresses split_addresses(std::span<const std::byte> bytes);

// It connects once, and goes on with the transport that the address is of. system with `problem`.
Status make_either_transport(std::unique_ptr<transport::Transport> ucx,
                             std::unique_ptr<transport::Transport> tcp,
                             std::unique_ptr<transport::Transport>& transport, std::string& problem);

// One of the two may be null. UCX for hosts that have it, and there `one_sided`, which may be null, too.
Status make_either_links(std::unique_ptr<transport::Transport> ucx, std::unique_ptr<transport::Transport> tcp,
                         std::unique_ptr<transport::OneSided> one_sided, std::unique_ptr<DeviceLinks>& links,
                         std::string& problem);

}  // namespace offpath::link
