// DirectPort: where ranks of other proxies ask this one for small operations on its windows themselves
// (rma/direct.h): a listener over plain TCP and those who have proved that they belong to a job that is
// served here. One object a proxy.
//
// Ownership: its transport; it borrows the engine. Threads: the proxy's.
// Trust: who connects must name the listener's random number of 128 bits (transport/tcp). Before he has
// proved, by a secret that was drawn for a rank of the job and that only the job's ranks know, which job he
// is of, he can have a random number and nothing else; at most max_unproved are in that state, the oldest
// gives way. Then he reaches the windows of that job. What he says is checked by the engine; who does not
// read his answers, or talks nonsense, is cut off.
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
    // Answers that may wait for a caller to read.
    static constexpr std::size_t max_unsent = 256;

    DirectPort(std::unique_ptr<transport::Transport> transport, engine::Engine& engine);
    ~DirectPort() override;

    std::vector<std::byte> address() const { return transport_->address(); }
    // A rank is served from now on; what callers must know to reach it.
    control::Secret admit(const engine::JobId& job, std::uint32_t rank);
    // It is not any more. With the last rank of its job go the job's callers.
    void forget(const engine::JobId& job, std::uint32_t rank);

    unsigned progress();
    int event_fd() const { return transport_->event_fd(); }
    Status arm() { return transport_->arm(); }

  private:
    using Job = std::pair<std::uint64_t, std::uint64_t>;
    struct Caller {
        transport::Endpoint* endpoint = nullptr;
        std::uint32_t path = 0;  // what he calls it
        control::Nonce challenge{};
        std::uint64_t token = 0;  // 0: has proved nothing yet
        engine::JobId job;
        std::uint32_t rank = 0;
        bool held = false;  // answers of this round leave together
    };
    using Callers = std::list<Caller>;  // the unproved in front, the oldest first

    void on_message(const transport::Incoming& message) override;
    void on_endpoint_lost(transport::Endpoint& endpoint) override;

    void on_handshake(std::uint32_t path, std::span<const std::byte> payload);
    void on_call(std::uint32_t path, const control::DirectCall& call);
    void on_proof(const control::DirectProof& proof);
    // Null: nobody who has proved who he is, or one who was cut off just now.
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
    std::vector<std::uint64_t> held_;  // tokens of those whose answers wait for the end of the round
    // To requests of one bundle, the answers that have not gone out.
    std::vector<std::byte> answers_;
    std::uint32_t answer_count_ = 0;
};

}  // namespace offpath::proxy
