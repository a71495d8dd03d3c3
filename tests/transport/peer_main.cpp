// The second process of the two-process tests: `transport_peer TLS MODE`. Prints "address " and its address
// in hexadecimal, reads the other's from standard input, then serves until it is killed or its input ends.
//   echo   sends every message back
//   hold   receives and never fetches
//   flood  always has eight payloads of 1 MiB to send
#include "harness.h"

#include "transport/ucx/ucx_transport.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <deque>
#include <iostream>

using namespace offpath;
using namespace offpath::transport;
using namespace offpath::transport::test;

namespace {

struct Reply : Completion {
    Transport* transport = nullptr;
    Endpoint* back = nullptr;
    Header header;
    std::vector<std::byte> payload;
    bool sending = false, over = false;

    void fetched() {
        sending = true;
        if (transport->send(*back, header.view(), payload.data(), payload.size(), this) !=
            Status::in_progress)
            over = true;
    }
    static void step(Completion* self, Status status) {
        auto& reply = static_cast<Reply&>(*self);
        if (reply.sending || status != Status::ok)
            reply.over = true;
        else
            reply.fetched();
    }
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const std::string mode = argv[2];
    UcxConfig config;
    config.tls = argv[1];
    std::unique_ptr<Transport> transport;
    std::string problem;
    if (make_ucx_transport(config, transport, problem) != Status::ok) {
        std::cerr << problem << '\n';
        return 1;
    }
    fmt::print("address ");
    for (std::byte byte : transport->address())
        fmt::print("{:02x}", std::to_integer<unsigned>(byte));
    fmt::print("\n");
    std::fflush(stdout);
    std::string line;
    if (!std::getline(std::cin, line)) return 0;
    std::vector<std::byte> address;
    for (std::size_t i = 0; i + 1 < line.size(); i += 2)
        address.push_back(static_cast<std::byte>(std::stoul(line.substr(i, 2), nullptr, 16)));
    Endpoint* back = nullptr;
    if (transport->connect(address, &back) != Status::ok) return 1;

    Recorder recorder;
    std::deque<Reply> replies;
    recorder.then = [&](const Incoming& message) {
        recorder.messages.clear();
        if (mode != "echo") return;
        const Header header = Header::of(message);
        if (!message.rendezvous) {
            if (message.bytes <= Transport::max_post) {
                (void)transport->post(*back, message.header, {message.data, message.bytes});
                return;
            }
        }
        Reply& reply = replies.emplace_back();
        reply.function = &Reply::step;
        reply.transport = transport.get();
        reply.back = back;
        reply.header = header;
        reply.payload.resize(message.bytes);
        if (!message.rendezvous) {
            std::memcpy(reply.payload.data(), message.data, message.bytes);
            reply.fetched();
        } else if (transport->fetch(message.rendezvous, reply.payload.data(), message.bytes, &reply) ==
                   Status::ok) {
            reply.fetched();
        }
    };
    transport->set_handler(&recorder);

    const auto payload = make_payload(1, 1 << 20);
    std::deque<Counted> offers(mode == "flood" ? 8 : 0);
    for (Counted& offer : offers)
        offer.start(
            transport->send(*back, Header{1, payload.size()}.view(), payload.data(), payload.size(), &offer));

    fcntl(0, F_SETFL, O_NONBLOCK);
    char byte = 0;
    for (unsigned round = 0;; ++round) {
        if (transport->progress() == 0) usleep(50);
        while (!replies.empty() && replies.front().over)
            replies.pop_front();
        for (Counted& offer : offers) {
            if (!offer.done() || !recorder.lost.empty()) continue;
            offer.calls = 0;
            offer.start(transport->send(*back, Header{1, payload.size()}.view(), payload.data(),
                                        payload.size(), &offer));
        }
        if (round % 64 == 0 && read(0, &byte, 1) == 0) return 0;
    }
}
