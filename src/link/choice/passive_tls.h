// Which of UCX's transports may serve remote memory of a link. Pure.
#pragma once

#include <string>
#include <string_view>

namespace offpath::link {

// Returns those of the list `allowed`, as UCX_TLS has it, whose puts may be passive; empty: none. UCX's
// emulation over TCP would write wherever a peer says. Datagrams (ud) stay as helpers of reliable queue
// pairs, which UCX connects by them.
std::string passive_tls(std::string_view allowed);

}  // namespace offpath::link
