// Other proxies, as an engine knows them: by job, and by how they are reached.
#pragma once

#include "engine/shared/identifiers.h"
#include "transport/transport.h"

#include <memory>
#include <unordered_map>
#include <vector>

namespace offpath::engine {

// How a proxy is reached. Peers of several jobs share one, if those jobs say the same address.
struct Way {
    std::vector<std::byte> address;
    transport::Endpoint* endpoint = nullptr;
    bool lost = false;
    // beats.cpp
    bool probing = false;          // its endpoint was made to see which proxy is there: nothing depends on it
    bool failed = false;           // that endpoint, or the attempt to make it
    std::uint64_t failing_ns = 0;  // since the first of those failures
    bool doubted = false;          // operations here depend on a peer on it, or one was given up
    bool given_up = false;         // a peer on it was
    bool answers = false;          // or may do so yet: to one of its peers
};

// A proxy, for one job: the job's ranks say where it is, and the passes prove that it belongs to the job.
struct Peer {
    ProxyId id = 0;
    JobId job;
    bool self = false;
    bool lost = false;
    Way* way = nullptr;  // null: it has spoken, and no rank here has said where it is
    std::uint64_t pass_there = 0, pass_here = 0;
    // beats.cpp
    bool awaited = false;         // operations here depend on it
    bool named = false;           // one of them on it alone
    bool asked = false;           // a question is open
    bool has_answered = false;    // ever: before, it may not know us yet
    std::uint64_t silent_ns = 0;  // since the question

    transport::Endpoint* endpoint() const { return way == nullptr ? nullptr : way->endpoint; }
};

// A job with sessions here.
struct Job {
    JobId id;
    JobSecret secret{};
    std::size_t sessions = 0;
    std::uint64_t early_bytes = 0;  // of messages that wait, for whatever team
    std::unordered_map<ProxyId, std::unique_ptr<Peer>> peers;
};

}  // namespace offpath::engine
