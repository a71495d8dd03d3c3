// Names that engines and those who use them share.
#pragma once

#include "base/message_key.h"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>

namespace offpath::engine {

// Names a proxy in the whole job. 0 is none.
using ProxyId = std::uint64_t;
// Drawn at random by the job's first rank: it names the job.
struct JobId {
    std::uint64_t high = 0, low = 0;
    friend auto operator<=>(const JobId&, const JobId&) = default;
};
// What the ranks of a job tell their proxies, and nobody else: a proxy that knows it may speak to the job's
// sessions. It never crosses the network between proxies.
using JobSecret = std::array<std::byte, 32>;
// What proves, in a message from one proxy to another, that its sender knows the secret of the job: 64 bits
// of HMAC-SHA256 over the job and both numbers.
std::uint64_t pass_of(const JobSecret& secret, const JobId& job, ProxyId from, ProxyId to);

using offpath::MessageKey;

// Where a member of a team is served.
struct Member {
    ProxyId proxy = 0;
    std::uint32_t job_rank = 0;
};

}  // namespace offpath::engine
