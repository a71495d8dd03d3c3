// The transport over plain TCP, for links between a host and its device where there is nothing better.
// Payload goes from the sender's memory into the socket and from the socket into the receiver's memory, so
// that it costs each side what a bare connection costs; and the kernel, not a signal, says what memory is not
// there (Transport::checks_memory). One connection an endpoint and direction of connecting.
//
// Payload is pushed: it does not wait at its sender. What is neither fetched nor discarded inside on_message
// is kept in memory of the transport until it is.
//
// Endpoints: connect() to one that listens makes a connection; connect() to one that does not waits for the
// one that its connect() makes: the nth here meets the nth there. disconnect() closes at once; operations in
// flight end with peer_lost inside a later progress(). A peer that vanishes without a word is noticed after
// 8 s. Destruction sends what it can for `drain_ms`; completions that are still out are called with canceled.
//
// Trust: who connects must name the listener's address, which holds a random number of 128 bits, before
// anything that he sends counts, and has 5 s for that. At most 512 connections may stay that no connect()
// here wants; then the oldest goes. Who connects waits 8 s for the answer.
#pragma once

#include "transport/transport.h"

#include <memory>
#include <string>

namespace offpath::transport {

struct TcpConfig {
    std::string devices;  // network devices, e.g. "p0" or "eth0,eth1"; empty: all
    bool listen = true;
    unsigned drain_ms = 200;
};

// ok, or unavailable or system with `problem`.
Status make_tcp_transport(const TcpConfig& config, std::unique_ptr<Transport>& transport,
                          std::string& problem);

}  // namespace offpath::transport
