// What comes to an encrypting transport: messages of its peer that the input changes, repeats or moves,
// messages that the input makes up, and addresses. What is accepted is what the peer has sent, once.
#include "input.h"
#include "once.h"
#include "played_transport.h"
#include "quiet.h"
#include "transport/encrypted/encrypted.h"
#include "transport/encrypted/format.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>

namespace {

using namespace offpath;
using fuzz::Input;
using fuzz::PlayedTransport;
using fuzz::require;
using transport::encrypted::Address;

using Bytes = std::vector<std::byte>;

struct Payload : fuzz::Once {
    Bytes to;
};

// Headers are numbers of messages.
struct Receiver : transport::Handler {
    void on_message(const transport::Incoming& message) override {
        std::uint32_t number = 0;
        require(message.header.size() == sizeof number, "a header of another length");
        std::memcpy(&number, message.header.data(), sizeof number);
        require(number < sent.size(), "a message that nobody has sent");
        require(++come[number] == 1, "a message comes twice");
        const Bytes& wanted = sent[number];
        require(message.bytes == wanted.size(), "a payload of another size");
        if (message.data != nullptr || message.rendezvous == nullptr) {
            require(std::equal(wanted.begin(), wanted.end(), message.data), "a payload was changed");
        } else if (number % 3 == 0) {
            transport->discard(message.rendezvous);
        } else {
            fetched.emplace_back().to.resize(message.bytes);
            const Status status = transport->fetch(message.rendezvous, fetched.back().to.data(),
                                                   message.bytes, &fetched.back());
            require(status == Status::in_progress, "a fetch is over at once");
        }
    }
    void on_endpoint_lost(transport::Endpoint&) override {}
    transport::Transport* transport = nullptr;
    std::deque<Bytes> sent;
    std::map<std::uint32_t, int> come;
    std::deque<Payload> fetched;
};

struct Side {
    Side() {
        auto made = std::make_unique<PlayedTransport>();
        below = made.get();
        transport = transport::make_encrypted_transport(std::move(made));
        receiver.transport = transport.get();
        transport->set_handler(&receiver);
    }
    Receiver receiver;
    PlayedTransport* below;
    std::unique_ptr<transport::Transport> transport;
};

void as_messages(Input& input) {
    Side a, b;
    transport::Endpoint *to_b = nullptr, *to_a = nullptr;
    require(a.transport->connect(b.transport->address(), &to_b) == Status::ok &&
                b.transport->connect(a.transport->address(), &to_a) == Status::ok,
            "no connection");
    for (int steps = 0; steps < 64 && !input.empty(); ++steps) {
        const auto step = input.take<std::uint8_t>();
        if (step % 4 == 0) {
            const auto number = static_cast<std::uint32_t>(b.receiver.sent.size());
            b.receiver.sent.push_back(input.payload(input.below(300)));
            (void)a.transport->post(*to_b, std::as_bytes(std::span(&number, 1)), b.receiver.sent.back());
        } else if (step % 4 == 1) {
            b.below->say(input.bytes(input.below(230)), input.payload(input.below(300)), step % 8 == 1);
        } else if (!a.below->sent.empty()) {
            // One of the messages, perhaps again, perhaps changed.
            PlayedTransport::Sent message = a.below->sent[input.below(a.below->sent.size())];
            for (std::size_t changes = step % 4 == 2 ? 0 : input.below(4); changes > 0; --changes) {
                Bytes& in =
                    input.below(3) == 0 && !message.payload.empty() ? message.payload : message.header;
                in[input.below(in.size())] ^= static_cast<std::byte>(input.take<std::uint8_t>());
            }
            if (step % 32 == 3) message.header.resize(input.below(230));
            b.below->say(message.header, message.payload, step % 8 > 4);
        }
        // Questions and answers go back and forth.
        if (step % 16 == 5 && !b.below->sent.empty())
            a.below->say(b.below->sent.back().header, b.below->sent.back().payload, false);
        a.transport->progress();
        b.transport->progress();
    }
    while (b.transport->progress() > 0) {
    }
    for (const Payload& one : b.receiver.fetched)
        require(one.called, "a fetched payload does not end");
    require(b.below->settled(), "an offered payload was neither fetched nor discarded");
}

void as_address(Input& input) {
    Bytes bytes = input.bytes(input.below(400));
    if (input.take<std::uint8_t>() % 2 == 0) {
        // The digest is right.
        const auto digest = transport::encrypted::digest_of(bytes);
        bytes.insert(bytes.end(), digest.begin(), digest.end());
    }
    Address address;
    std::string problem;
    if (decode(bytes, address, problem) != Status::ok)
        require(!problem.empty(), "an address was refused without a reason");
    else
        require(address.below.size() < bytes.size(), "an address contains itself");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::be_quiet();
    Input input(data, size);
    if (input.take<std::uint8_t>() % 8 == 0) {
        as_address(input);
    } else {
        as_messages(input);
    }
    return 0;
}
