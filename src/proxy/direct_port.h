// DirectPort: lets ranks of other proxies send small window operations straight to this proxy (rma/direct.h).
// It has a listener over plain TCP, and the callers that have proved membership in a job served here. Each
// proxy has at most one.
//
// Ownership: it owns its transport and borrows the engine. Threads: the proxy's.
//
// Trust: a connecting caller must name the listener's random number of 128 bits (transport/tcp). It must then
// prove its job with a secret that was drawn for a rank of that job and that only the job's ranks know. Until
// then it gets a random number and nothing else; at most max_unproved callers are in that state, and beyond
// that the oldest is dropped. Afterwards it reaches the windows of that job. The engine checks every request.
// A caller that does not read its answers, or sends invalid data, is disconnected.
#pragma once

#include "control/authentication.h"
#include "engine/engine.h"
#include "rma/direct.h"
#include "transport/transport.h"

#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

namespace offpath::proxy {

class DirectPort final : transport::Handler {
  public:
    static constexpr std::size_t max_unproved = 256, max_callers = 4096;
    // The most answers that may wait for a caller to read them.
    static constexpr std::size_t max_unsent = 256;

    DirectPort(std::unique_ptr<transport::Transport> transport, engine::Engine& engine);
    ~DirectPort() override;

    std::vector<std::byte> address() const { return transport_->address(); }
    // A rank is served from now on. Returns the secret that callers need to reach it.
    control::Secret admit(const engine::JobId& job, std::uint32_t rank);
    // The rank is no longer served. The job's callers are dropped with its last rank.
    void forget(const engine::JobId& job, std::uint32_t rank);

    unsigned progress();
    int event_fd() const { return transport_->event_fd(); }
    Status arm() { return transport_->arm(); }

  private:
    using Job = std::pair<std::uint64_t, std::uint64_t>;
    struct Caller {
        transport::Endpoint* endpoint = nullptr;
        std::uint32_t path = 0;  // the caller's name for the connection
        control::Nonce challenge{};
        std::uint64_t token = 0;  // 0: it has proved nothing yet
        engine::JobId job;
        std::uint32_t rank = 0;
        bool held = false;  // answers of this round leave together
    };
    using Callers = std::list<Caller>;  // the unproved first, oldest first

    void on_message(const transport::Incoming& message) override;
    void on_endpoint_lost(transport::Endpoint& endpoint) override;

    void on_handshake(std::uint32_t path, std::span<const std::byte> payload);
    void on_call(std::uint32_t path, const control::DirectCall& call);
    void on_proof(const control::DirectProof& proof);
    // Null: no caller with this token has proved its job, or it has just been dropped.
    Caller* caller_of(std::uint64_t token);
    void hold(Caller& caller);
    void on_request(const rma::direct::Request& request, std::span<const std::byte> operands);
    void on_requests(const rma::direct::Bundle& bundle, std::span<const std::byte> payload);
    bool on_requests(Caller& caller, std::uint32_t count, std::span<const std::byte> payload);
    Status perform(const Caller& caller, const rma::direct::Request& request,
                   std::span<const std::byte> operands, std::span<const std::byte>& result);
    void answer(Caller& caller, std::uint64_t number, Status status, std::span<const std::byte> result);
    void answer_together(Caller& caller, std::uint64_t number, Status status,
                         std::span<const std::byte> result);
    void send_answers(Caller& caller);
    void say(Caller& caller, const control::Message& message);
    void drop(Callers::iterator caller);

    std::unique_ptr<transport::Transport> transport_;
    engine::Engine& engine_;
    std::map<Job, std::map<std::uint32_t, control::Secret>> ranks_;
    Callers callers_;
    std::size_t unproved_ = 0;
    std::unordered_map<std::uint64_t, Callers::iterator> by_token_;
    std::vector<std::uint64_t> held_;  // callers whose answers wait for the end of the round
    // Unsent answers to the requests of one bundle.
    std::vector<std::byte> answers_;
    std::uint32_t answer_count_ = 0;
};

}  // namespace offpath::proxy
