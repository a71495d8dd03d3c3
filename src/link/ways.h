// The ways that a link can go: UCX, where both sides have a network card with which UCX does more than TCP;
// else plain TCP, which costs half of UCX's TCP (docs/transport.md). Each side says what it has in its
// address, and the device chooses. OFFPATH_LINK on either side: auto (default), tcp, ucx, both (to offer UCX
// without such a card). Threads: as Transport.
#pragma once

#include "link/device_links.h"
#include "transport/transport.h"

#include <memory>
#include <string>

namespace offpath::link {

// `devices`, below: as UCX_NET_DEVICES; empty: that, else all. unavailable or invalid with `problem`.

// Never shared memory: the two sides are different systems, even where a test puts them on one machine. Nor
// UCX's way to itself, with which devices that are not there would go unnoticed.
Status make_ucx_way(const std::string& devices, std::unique_ptr<transport::Transport>& transport,
                    std::string& problem);
// Devices listen, hosts connect.
Status make_tcp_way(const std::string& devices, bool listens,
                    std::unique_ptr<transport::Transport>& transport, std::string& problem);

// All that this side has. A host's transport connects to one device only.
Status make_host_transport(const std::string& devices, std::unique_ptr<transport::Transport>& transport,
                           std::string& problem);
Status open_device_links(const std::string& devices, std::unique_ptr<DeviceLinks>& links,
                         std::string& problem);

}  // namespace offpath::link
