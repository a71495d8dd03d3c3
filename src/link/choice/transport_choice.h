// The transports that a link can use: UCX where both sides have a network card with which UCX does more than
// TCP; otherwise plain TCP, which costs half of UCX's TCP (docs/transport.md). Each side's address says what
// it has, and the device chooses. OFFPATH_LINK on either side: auto (default), tcp, ucx, both (offers UCX
// even without such a card). Threads: as Transport.
#pragma once

#include "link/device_links.h"
#include "transport/one_sided.h"
#include "transport/transport.h"

#include <memory>
#include <string>

namespace offpath::link {

// `devices` below has the form of UCX_NET_DEVICES; empty: that variable, else all devices. Errors:
// unavailable or invalid, with `problem`.

// Never uses shared memory, because the two sides are different systems even where a test puts them on one
// machine. Nor does it use UCX's self transport, because missing devices would then go unnoticed.
Status make_ucx_way(const std::string& devices, std::unique_ptr<transport::Transport>& transport,
                    std::string& problem);
// Devices listen; hosts connect.
Status make_tcp_way(const std::string& devices, bool listens,
                    std::unique_ptr<transport::Transport>& transport, std::string& problem);

// Opens one-sided access for completions that the device writes into the host's memory, as OFFPATH_RINGS says
// (rings.h). Null where completions are to be messages. `note` tells people why, or over which transport.
// Errors: invalid, with `note`.
Status make_rings(const std::string& devices, std::unique_ptr<transport::OneSided>& one_sided,
                  std::string& note);

// A text for people: what this side offers, and how completions arrive.
struct LinkFacts {
    std::string ways, completions;
};
LinkFacts link_facts(const std::string& devices);

// Opens everything that this side has. A host's transport connects to one device only. `one_sided` stays null
// where completions are to be messages.
Status make_host_transport(const std::string& devices, std::unique_ptr<transport::Transport>& transport,
                           std::unique_ptr<transport::OneSided>& one_sided, std::string& problem);
Status open_device_links(const std::string& devices, std::unique_ptr<DeviceLinks>& links,
                         std::string& problem);

}  // namespace offpath::link
