// The transport over plain TCP, for links between a host and its device where there is nothing better.
// Payload goes from the sender's memory into the socket, and from the socket into the receiver's memory. Each
// side therefore pays what a bare connection costs. The kernel reports memory that is not mapped; no signal
// is raised (Transport::checks_memory). Each endpoint has one connection per direction of connecting.
//
// The sender pushes payload at once. Payload that is neither fetched nor discarded inside on_message is kept
// in the transport's memory until it is.
//
// Endpoints: connect() to a peer that listens makes a connection. connect() to a peer that does not listen
// waits for the peer's own connect(): the nth call here pairs with the nth call there. disconnect() closes at
// once; operations in flight end with peer_lost inside a later progress(). A peer that vanishes without
// closing is noticed after 8 s. The destructor sends what it can for `drain_ms`, then calls the outstanding
// completions with canceled.
//
// Trust: a connecting peer must first name the listener's address, which holds a random number of 128 bits.
// It has 5 s to do so, and nothing else that it sends counts before. At most 512 connections may exist that
// no connect() here has claimed; beyond that the oldest is closed. The connecting side waits 8 s for the
// answer.
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

// Returns ok, or unavailable or system with `problem`.
Status make_tcp_transport(const TcpConfig& config, std::unique_ptr<Transport>& transport,
                          std::string& problem);

}  // namespace offpath::transport
