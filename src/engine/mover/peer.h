// Other proxies as an engine knows them: by job, and by the way to reach them.
#pragma once

#include "engine/shared/identifiers.h"
#include "transport/transport.h"

#include <algorithm>
#include <span>
#include <string>
#include <unordered_map>

namespace offpath::engine {

// How a proxy is reached. Peers of several jobs share a way if their jobs name the same address.
struct Way {
    std::string address;  // bytes; a string keeps short ones without memory of their own
    transport::Endpoint* endpoint = nullptr;
    std::span<const std::byte> address_bytes() const { return std::as_bytes(std::span(address)); }
    bool leads_to(std::span<const std::byte> other) const {
        return std::ranges::equal(other, address_bytes());
    }
    bool lost = false;
    std::uint32_t ended_peers = 0;  // records of peers whose jobs have ended
    // beats.cpp
    bool probing = false;          // its endpoint only tests which proxy is there; nothing depends on it
    bool failed = false;           // that endpoint failed, or could not be made
    std::uint64_t failing_ns = 0;  // since the first of those failures
    bool doubted = false;          // operations here depend on a peer on it, or one was given up
    bool given_up = false;         // a peer on it was given up
    bool answers = false;          // one of its peers answers, or may still answer
};

// A proxy, for one job. The job's ranks announce its address; the passes prove that it belongs to the job.
struct Peer {
    ProxyId id = 0;
    JobId job;
    bool self = false;
    bool lost = false;
    Way* way = nullptr;  // null: it has sent messages, but no rank here has announced its address
    std::uint64_t pass_there = 0, pass_here = 0;
    // beats.cpp
    bool awaited = false;         // operations here depend on it
    bool named = false;           // an operation depends on this peer alone
    bool asked = false;           // a question is unanswered
    bool knows_us = false;        // it has sent something; until then a question may mean nothing to it
    bool has_answered = false;    // until then it is asked again in each round
    std::uint64_t silent_ns = 0;  // since the question

    // It has sent something. An earlier question may have met a proxy that did not know us.
    void has_sent() {
        if (!knows_us) asked = false;
        knows_us = true;
    }

    transport::Endpoint* endpoint() const { return way == nullptr ? nullptr : way->endpoint; }
};

// A job with sessions here.
struct Job {
    JobId id;
    JobSecret secret{};
    std::size_t sessions = 0;
    std::uint64_t early_bytes = 0;  // of early messages, for all teams
    std::unordered_map<ProxyId, Peer> peers;
};

}  // namespace offpath::engine
