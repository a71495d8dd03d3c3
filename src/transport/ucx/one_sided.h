// OneSided over UCX (remote memory access), in a context of its own. UCX checks nothing about emulated puts:
// over TCP, and from peers that write its protocol by hand, they can go anywhere in this process. Hence a
// context that asks for them is opened only where it is of use, and by default without TCP.
#pragma once

#include "transport/one_sided.h"
#include "transport/ucx/ucx_transport.h"

namespace offpath::transport {

// `config`: in_process and below do not matter. unavailable or unsupported with `problem`.
Status make_ucx_one_sided(const UcxConfig& config, std::unique_ptr<OneSided>& one_sided,
                          std::string& problem);

// Whether the transports of `config` put without the target's doing: tried between two workers of this
// process, the second of which stands still. `note` is for people. Takes some milliseconds.
bool puts_are_passive(const UcxConfig& config, std::string& note);

}  // namespace offpath::transport
