// The ways that a link can go: UCX, where both sides have a network card with which UCX does more than TCP;
// else plain TCP, which costs half of UCX's TCP (docs/transport.md). Each side says what it has in its
// address, and the device chooses. OFFPATH_LINK on either side: auto (default), tcp, ucx, both (to offer UCX
// without such a card). Threads: as Transport.
#pragma once

#include "link/device_links.h"
#include "transport/one_sided.h"
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

// The way for completions that are written into the other side's memory, as OFFPATH_RINGS says (rings.h).
// Null where they are to be messages; `note` says why, or over what, for people. invalid with `note`.
Status make_rings(const std::string& devices, std::unique_ptr<transport::OneSided>& one_sided,
                  std::string& note);

// For people: what this side offers, and how completions come.
struct LinkFacts {
    std::string ways, completions;
};
LinkFacts link_facts(const std::string& devices);

// All that this side has. A host's transport connects to one device only.
// `one_sided` stays null where completions are to come in messages.
Status make_host_transport(const std::string& devices, std::unique_ptr<transport::Transport>& transport,
                           std::unique_ptr<transport::OneSided>& one_sided, std::string& problem);
Status open_device_links(const std::string& devices, std::unique_ptr<DeviceLinks>& links,
                         std::string& problem);

}  // namespace offpath::link
