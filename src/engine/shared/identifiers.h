// Identifiers that engines and their callers share.
#pragma once

#include "base/message_key.h"
#include "base/protocol_version.h"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>

namespace offpath::engine {

// Names a proxy in the whole job. 0 means none.
using ProxyId = std::uint64_t;
// Names the job. Its first rank draws it at random.
struct JobId {
    std::uint64_t high = 0, low = 0;
    friend auto operator<=>(const JobId&, const JobId&) = default;
};
// The secret of a job, which its ranks tell only to their proxies. A proxy that knows it may talk to the
// job's sessions. It never crosses the network between proxies.
using JobSecret = std::array<std::byte, 32>;
// The pass in a message from one proxy to another: it proves that the sender knows the job's secret. 64 bits
// of HMAC-SHA256 over the job, both numbers and the version. So a proxy of another version is a stranger,
// whose messages nobody reads.
std::uint64_t pass_of(const JobSecret& secret, const JobId& job, ProxyId from, ProxyId to,
                      std::uint16_t version = protocol_version);

using offpath::MessageKey;

// The proxy that serves a member of a team, and its job rank.
struct Member {
    ProxyId proxy = 0;
    std::uint32_t job_rank = 0;
};

}  // namespace offpath::engine
