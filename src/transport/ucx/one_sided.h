// OneSided over UCX (remote memory access), in a context of its own. UCX does not check emulated puts. Over
// TCP, or from a peer that forges its protocol, they can reach any memory of this process. Such a context is
// therefore opened only where it is useful, and by default without TCP.
#pragma once

#include "transport/one_sided.h"
#include "transport/ucx/ucx_transport.h"

namespace offpath::transport {

// `in_process` and the fields after it in `config` are ignored. Errors: unavailable or unsupported, with
// `problem`.
Status make_ucx_one_sided(const UcxConfig& config, std::unique_ptr<OneSided>& one_sided,
                          std::string& problem);

// Whether puts over the transports of `config` complete without the target taking part. It tries this between
// two workers of this process, the second of which does not progress. `note` is for people. Takes some
// milliseconds.
bool puts_are_passive(const UcxConfig& config, std::string& note);

}  // namespace offpath::transport
