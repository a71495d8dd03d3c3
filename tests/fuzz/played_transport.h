// PlayedTransport: a transport whose other end is the fuzzer. say() hands a message to the handler at once;
// what the code under test sends is kept in `sent`. Payload that is to be fetched lies in memory of its own.
// Operations complete in progress(). Threads: one.
#pragma once

#include "transport/transport.h"

#include "input.h"

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace offpath::fuzz {

class PlayedTransport final : public transport::Transport {
  public:
    struct Sent {
        std::vector<std::byte> header, payload;
    };

    ~PlayedTransport() override {
        while (progress() > 0) {
        }
    }
    // `by_fetch`: the payload does not come with the message.
    void say(std::span<const std::byte> header, std::span<const std::byte> payload, bool by_fetch) {
        if (handler_ == nullptr) return;
        const std::vector<std::byte> head(header.begin(), header.end());
        auto body = std::make_unique<Rendezvous>(Rendezvous{{payload.begin(), payload.end()}, false});
        transport::Incoming message;
        message.header = head;
        message.bytes = body->bytes.size();
        if (by_fetch && !body->bytes.empty()) {
            message.rendezvous = body.get();
            offered_.push_back(std::move(body));
            handler_->on_message(message);
        } else {
            message.data = body->bytes.empty() ? nullptr : body->bytes.data();
            handler_->on_message(message);
        }
    }
    void lose_all() {
        if (handler_ == nullptr) return;
        for (std::size_t i = 0; i < endpoints_.size(); ++i)
            if (endpoints_[i] != nullptr) handler_->on_endpoint_lost(*endpoints_[i]);
    }
    std::deque<Sent> sent;

    void set_handler(transport::Handler* handler) override { handler_ = handler; }
    std::vector<std::byte> address() const override { return std::vector<std::byte>(8, std::byte{1}); }
    Status connect(std::span<const std::byte>, transport::Endpoint** endpoint) override {
        endpoints_.push_back(std::make_unique<transport::Endpoint>());
        *endpoint = endpoints_.back().get();
        return Status::ok;
    }
    void disconnect(transport::Endpoint* endpoint) override {
        const auto found =
            std::ranges::find_if(endpoints_, [=](const auto& one) { return one.get() == endpoint; });
        require(found != endpoints_.end(), "an endpoint is disconnected that does not exist");
        endpoints_.erase(found);
    }
    Status post(transport::Endpoint&, std::span<const std::byte> header,
                std::span<const std::byte> payload) override {
        require(header.size() <= max_wire_header && payload.size() <= max_post,
                "a message is too long for post()");
        keep(header, payload);
        return Status::ok;
    }
    Status send(transport::Endpoint&, std::span<const std::byte> header, const void* payload,
                std::size_t bytes, Completion* completion) override {
        require(header.size() <= max_wire_header, "a header is too long for send()");
        keep(header, {static_cast<const std::byte*>(payload), bytes});
        due_.push_back(completion);
        return Status::in_progress;
    }
    Status fetch(void* rendezvous, void* destination, std::size_t bytes, Completion* completion) override {
        Rendezvous& from = settle(rendezvous);
        require(bytes == from.bytes.size(), "fetch() asks for another size than was offered");
        std::memcpy(destination, from.bytes.data(), bytes);
        due_.push_back(completion);
        return Status::in_progress;
    }
    void discard(void* rendezvous) override { (void)settle(rendezvous); }
    unsigned progress() override {
        unsigned events = 0;
        for (std::deque<Completion*> batch = std::exchange(due_, {}); !batch.empty();
             batch.pop_front(), ++events)
            (*batch.front())(Status::ok);
        return events;
    }
    int event_fd() const override { return -1; }
    Status arm() override { return due_.empty() ? Status::ok : Status::retry; }
    std::string describe() const override { return "fuzzer"; }

    // Every offered payload was fetched or discarded.
    bool settled() const {
        return std::ranges::all_of(offered_, [](const auto& one) { return one->settled; });
    }

  private:
    static constexpr std::size_t most_kept = 256;

    struct Rendezvous {
        std::vector<std::byte> bytes;
        bool settled = false;
    };

    Rendezvous& settle(void* rendezvous) {
        Rendezvous& one = *static_cast<Rendezvous*>(rendezvous);
        require(!one.settled, "a payload is fetched or discarded twice");
        one.settled = true;
        return one;
    }
    void keep(std::span<const std::byte> header, std::span<const std::byte> payload) {
        sent.push_back({{header.begin(), header.end()}, {payload.begin(), payload.end()}});
        if (sent.size() > most_kept) sent.pop_front();
    }

    transport::Handler* handler_ = nullptr;
    std::vector<std::unique_ptr<transport::Endpoint>> endpoints_;
    std::vector<std::unique_ptr<Rendezvous>> offered_;
    std::deque<Completion*> due_;
};

}  // namespace offpath::fuzz
