// The transport over UCX (UCP active messages): TCP, shared memory, RDMA, whatever the UCX at hand reaches
// the peer with. One context and one worker per transport. Settings: what stands in UcxConfig wins over the
// UCX_* environment, and the environment wins over this room's own tuning (tuning.h).
//
// Endpoints: disconnect() closes by force and does not block; operations in flight on the endpoint complete
// with Status::peer_lost inside a later progress(). A peer that dies is noticed by its broken connection, or
// by UCX's keepalive; from then on every call on the endpoint returns peer_lost. Destruction flushes for at
// most `drain_ms`, then closes by force; completions that are still out are called with Status::canceled.
#pragma once

#include "transport/transport.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace offpath::transport {

struct UcxConfig {
    std::string net_devices;       // e.g. "v0" or "eth0,eth1"; empty: UCX_NET_DEVICES, else all
    std::string tls;               // e.g. "tcp,self"; empty: UCX_TLS, else all
    bool in_process = true;        // transports of one process reach each other by copying, without UCX
    bool several_threads = false;  // use from several threads, one at a time
    bool error_handling = true;    // notice peers that die; false may open faster transports
    // send() payloads of this size or more are fetched by the receiver, where that is not slower (see
    // push_bytes).
    std::size_t rendezvous_bytes = 64 << 10;
    // Over TCP: below TCP_RX_SEG_SIZE, so that a payload comes in one piece, without being put together in a
    // buffer of UCX.
    std::size_t stream_push_bytes = 240 << 10;
    unsigned drain_ms = 200;
};

// ok, or unavailable with `problem` naming what UCX lacks and which settings were in force.
Status make_ucx_transport(const UcxConfig& config, std::unique_ptr<Transport>& transport,
                          std::string& problem);

struct UcxFacts {
    std::string compiled_version, loaded_version;  // e.g. "1.22.0"
    std::vector<std::string> resources;            // "transport/device", e.g. "tcp/eth0"
    bool exported_memory_compiled = false;
    bool exported_memory_works = false;
    std::string exported_memory_probe;  // "works: ..." or "unsupported: why"
    std::string problem;                // why UCX could not be asked; empty: it could
};
// Takes some milliseconds: opens contexts of its own.
UcxFacts ucx_facts(const UcxConfig& config = {});

}  // namespace offpath::transport
