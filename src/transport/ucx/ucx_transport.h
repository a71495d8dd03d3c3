// The transport over UCX (UCP active messages). It uses whatever UCX reaches the peer with: TCP, shared
// memory, RDMA. Each transport has one context and one worker. UcxConfig overrides the UCX_* environment,
// which overrides our own tuning (tuning.h).
//
// Endpoints: disconnect() closes by force and does not block; operations in flight on the endpoint complete
// with peer_lost inside a later progress(). A broken connection or UCX's keepalive reveals that a peer died;
// from then on every call on the endpoint returns peer_lost. The destructor flushes for at most `drain_ms`,
// then closes by force and calls the outstanding completions with canceled.
#pragma once

#include "transport/transport.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace offpath::transport {

// Where the memory comes from that only the network card reaches.
enum class MemorySource {
    none,
    exported,  // from a host that packed it (exported_memory.h)
    // From this process. It tests the data path where nothing can be exported.
    own_process
};

struct UcxConfig {
    std::string net_devices;       // e.g. "v0" or "eth0,eth1"; empty: UCX_NET_DEVICES, else all
    std::string tls;               // e.g. "tcp,self"; empty: UCX_TLS, else all
    bool in_process = true;        // transports of one process reach each other by copying, without UCX
    bool several_threads = false;  // use from several threads, one at a time
    bool error_handling = true;    // notice peers that die; false may open faster transports
    // The receiver fetches send() payloads of this size or more, unless that is slower (see push_bytes).
    std::size_t rendezvous_bytes = 64 << 10;
    // Limit over TCP. It is below TCP_RX_SEG_SIZE, so a payload arrives in one piece and UCX need not
    // assemble it in a buffer.
    std::size_t stream_push_bytes = 240 << 10;
    unsigned drain_ms = 200;
    // Not none: the transport moves imported memory by itself (send_from(), fetch_into()), and reaches its
    // peers over the network card only, also those of this process.
    MemorySource imports = MemorySource::none;
};

// Returns ok, or unavailable; `problem` then names what UCX lacks and which settings were in force.
Status make_ucx_transport(const UcxConfig& config, std::unique_ptr<Transport>& transport,
                          std::string& problem);

struct UcxFacts {
    std::string compiled_version, loaded_version;  // e.g. "1.22.0"
    std::vector<std::string> resources;            // "transport/device", e.g. "tcp/eth0"
    bool exported_memory_compiled = false;
    bool exported_memory_works = false;
    std::string exported_memory_probe;  // "works: ..." or "unsupported: why"
    std::string problem;                // why UCX could not be queried; empty: it could
};
// Opens contexts of its own, which takes some milliseconds.
UcxFacts ucx_facts(const UcxConfig& config = {});

}  // namespace offpath::transport
