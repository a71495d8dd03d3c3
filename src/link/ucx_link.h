// The transport of a link over UCX, for both ends.
#pragma once

#include "transport/transport.h"

#include <memory>
#include <string>

namespace offpath::link {

// `devices`: as UCX_NET_DEVICES; empty: that, else all. Never shared memory: the two sides are different
// systems, even where a test puts them on one machine. Nor UCX's way to itself, with which devices that are
// not there would go unnoticed. unavailable with `problem`.
Status make_link_transport(const std::string& devices, std::unique_ptr<transport::Transport>& transport,
                           std::string& problem);

}  // namespace offpath::link
