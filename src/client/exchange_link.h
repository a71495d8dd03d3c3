// The two ends of the connections of an ExchangeTree. A child calls and proves that it knows its parent's
// published secret; the parent answers with a proof of its own. Once the tree is complete, `go` travels down,
// and then data travel up and down in turn. Threads: one.
#pragma once

#include "client/exchange_tree.h"

namespace offpath::client {

// The header of every message, in both directions.
struct ExchangeHeader {
    enum class Kind : std::uint32_t { handshake = 0x6f666578, go, data };
    Kind kind = Kind::handshake;
    std::uint32_t rank = 0;   // the child's
    std::uint64_t token = 0;  // of the connection, drawn by the parent; 0 in handshakes
};

// The record that a parent publishes.
struct ExchangeRecord {
    control::Secret secret{};
    std::vector<std::byte> address;

    std::vector<std::byte> bytes() const;
    bool read(std::span<const std::byte> from);
};

// Incoming bytes, which may arrive before any caller waits for them.
struct ExchangeInput : Completion {
    std::vector<std::byte> bytes;
    bool running = false, complete = false, failed = false;

    ExchangeInput();
    void take(transport::Transport& transport, const transport::Incoming& message);
    // False: the data do not have the size of `to`. The next data may come afterwards.
    bool take_out(std::span<std::byte> to);
};

// Sends in progress.
struct ExchangeOutput : Completion {
    std::size_t running = 0;
    bool failed = false;

    ExchangeOutput();
    Status send(transport::Transport& transport, transport::Endpoint& endpoint, const ExchangeHeader& header,
                std::span<const std::byte> data);
};

// A child's end.
class ExchangeTree::Up final : public transport::Handler {
  public:
    ~Up() override;
    // Does not wait. unavailable: the parent cannot be reached by this record.
    Status call(std::uint32_t rank, std::uint32_t parent, const ExchangeRecord& record, std::string& problem);
    bool lost() const { return lost_; }
    bool go() const { return go_; }
    transport::Transport& transport() { return *transport_; }
    Status send(std::span<const std::byte> data);
    bool sent() const { return output_.running == 0; }
    ExchangeInput input;

    void on_message(const transport::Incoming& message) override;
    void on_endpoint_lost(transport::Endpoint&) override { lost_ = true; }

  private:
    void on_handshake(const control::Message& message);
    void say(const control::Message& message);

    std::unique_ptr<transport::Transport> transport_;
    transport::Endpoint* endpoint_ = nullptr;
    std::uint32_t rank_ = 0, parent_ = 0;
    control::Secret secret_{};
    control::Nonce challenge_{}, nonce_{};
    std::uint64_t token_ = 0;
    ExchangeOutput output_;
    bool lost_ = false, go_ = false;
};

// The parent's end of the connections to all its children.
class ExchangeTree::Down final : public transport::Handler {
  public:
    Down(std::uint32_t rank, std::span<const TreePlace::Child> children);
    ~Down() override;
    Status open(std::string& problem);
    ExchangeRecord record() const;
    // The first child that is missing; size(): none.
    std::size_t first_absent() const;
    std::size_t size() const { return children_.size(); }
    bool complete() const { return first_absent() == children_.size(); }
    // The child that called with another version of the protocol, and both versions. Empty: none.
    const std::string& other_version() const { return other_version_; }
    transport::Transport& transport() { return *transport_; }
    Status go();
    ExchangeInput& input(std::size_t child) { return children_[child].input; }
    Status send(std::size_t child, std::span<const std::byte> data);
    bool sent() const { return output_.running == 0; }
    bool send_failed() const { return output_.failed; }

    void on_message(const transport::Incoming& message) override;
    void on_endpoint_lost(transport::Endpoint& endpoint) override;

  private:
    struct Child {
        std::uint32_t rank = 0;
        transport::Endpoint* endpoint = nullptr;  // null: it has not called
        control::Nonce challenge{};
        std::uint64_t token = 0;  // 0: it has not proved its identity
        ExchangeInput input;
    };
    Child* find(std::uint32_t rank);
    void on_call(std::uint32_t rank, const control::DirectCall& call);
    void on_proof(Child& child, const control::DirectProof& proof);
    void say(Child& child, const control::Message& message);
    void drop(Child& child);

    const std::uint32_t rank_;
    std::unique_ptr<transport::Transport> transport_;
    control::Secret secret_ = control::draw_secret();
    std::vector<Child> children_;
    std::string other_version_;
    ExchangeOutput output_;
};

}  // namespace offpath::client
