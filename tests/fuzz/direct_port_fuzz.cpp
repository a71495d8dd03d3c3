// What a caller sends to a direct port. The input is a row of messages: handshakes, requests and bundles of a
// stranger, and of a caller that has proved its job. The memory beside the window stays as it is, and whoever
// sends nonsense is dropped at most once.
#include "proxy/direct_port.h"

#include "played_transport.h"
#include "quiet.h"
#include "transport/tcp/address.h"

#include <optional>

namespace {

using namespace offpath;
using fuzz::Input;
using fuzz::PlayedTransport;
using fuzz::require;
namespace direct = rma::direct;

constexpr engine::JobId job{7, 9};
constexpr std::uint64_t team_id = 42, window_id = 3;
constexpr engine::Config small{.chunk_bytes = 4096,
                               .send_bounces = 2,
                               .recv_bounces = 2,
                               .chunks_in_flight = 2,
                               .reduce_tiles = 3,
                               .stored_bytes = 64 << 10,
                               .early_bytes = 64 << 10,
                               .visit_bytes = 64 << 10};

class WindowMemory final : public memory::HostMemory {
  public:
    static constexpr std::size_t begin = 64, bytes = 4096, size = begin + bytes + 64;

    memory::BackEnd back_end(const memory::HostRange&) const override { return memory::BackEnd::map; }
    std::byte* direct(const memory::HostRange& range, std::uint64_t offset, std::uint64_t length) override {
        if (offset > range.bytes || length > range.bytes - offset) return nullptr;
        return bytes_.data() + range.address + offset;
    }
    Status read(const memory::HostRange&, std::uint64_t, void*, std::size_t, Completion*) override {
        return Status::access;
    }
    Status write(const memory::HostRange&, std::uint64_t, const void*, std::size_t, Completion*) override {
        return Status::access;
    }
    bool beside_is_whole() const {
        const auto same = [](std::byte byte) { return byte == std::byte{0xa5}; };
        return std::all_of(bytes_.begin(), bytes_.begin() + begin, same) &&
               std::all_of(bytes_.begin() + begin + bytes, bytes_.end(), same);
    }

  private:
    std::vector<std::byte> bytes_ = std::vector<std::byte>(size, std::byte{0xa5});
};

class Scene {
  public:
    Scene() : fabric_(std::make_unique<PlayedTransport>()), engine_(*fabric_, 1, small) {
        engine::JobSecret secret{};
        must(engine_.open_session(job, secret, 0, memory_, &session_));
        const engine::Member members[] = {{1, 0}, {1, 1}};
        engine::Team* team = nullptr;
        must(engine_.create_team(*session_, team_id, 0, members, &team));
        engine::Window* window = nullptr;
        must(engine_.create_window(*team, window_id, {0, WindowMemory::begin, WindowMemory::bytes}, false,
                                   &window));
        auto made = std::make_unique<PlayedTransport>();
        port_transport_ = made.get();
        port_.emplace(std::move(made), engine_);
        secret_ = port_->admit(job, 0);
    }
    ~Scene() {
        port_.reset();
        while (!engine_.close_session(session_, Status::canceled))
            engine_.advance();
        require(memory_.beside_is_whole(), "memory beside the window was written");
        engine_.close();
        fabric_.reset();
    }
    void call() {
        transport::tcp::Address address;
        address.ips.resize(1);
        say(control::DirectCall{transport::tcp::encode(address)});
        listen();
    }
    void prove(bool rightly) {
        if (!challenge_) return;
        control::DirectProof proof{*challenge_, {}, job.high, job.low, 1, 0, {}};
        proof.mac = control::handshake_mac(secret_, *challenge_, proof.nonce, proof);
        if (!rightly) proof.mac[0] ^= std::byte{1};
        say(proof);
        listen();
    }
    void handshake(Input& input) {
        const direct::Handshake header{direct::Kind::handshake, input.take<std::uint32_t>()};
        port_transport_->say(direct::bytes_of(header), input.bytes(input.below(600)), false);
        listen();
    }
    void request(Input& input) {
        std::vector<std::byte> operands;
        const direct::Request made = drawn(input, operands);
        port_transport_->say(direct::bytes_of(made), operands, input.take<std::uint8_t>() == 0);
        listen();
    }
    void bundle(Input& input) {
        std::vector<std::byte> payload;
        std::uint32_t count = 0;
        for (const std::size_t wanted = input.below(20); count < wanted; ++count) {
            std::vector<std::byte> operands;
            const direct::Request made = drawn(input, operands);
            direct::append(payload, made, operands);
        }
        const auto flaw = input.take<std::uint8_t>();
        if (flaw == 1) ++count;
        if (flaw == 2) payload.resize(input.below(payload.size() + 1));
        const direct::Bundle header{direct::Kind::requests, count};
        port_transport_->say(direct::bytes_of(header), payload, false);
        listen();
    }
    void anything(Input& input) {
        const auto header = input.bytes(input.below(128));
        port_transport_->say(header, input.bytes(input.below(600)), input.take<std::uint8_t>() == 0);
        listen();
    }
    void lose() {
        port_transport_->lose_all();
        listen();
    }
    void leave() {
        port_->forget(job, 0);
        secret_ = port_->admit(job, 0);
    }

  private:
    static void must(Status status) { require(status == Status::ok, "the scene cannot be set"); }

    void say(const control::Message& message) {
        const direct::Handshake header{direct::Kind::handshake, 3};
        port_transport_->say(direct::bytes_of(header), control::encode_message(message), false);
    }
    void listen() {
        port_->progress();
        for (; !port_transport_->sent.empty(); port_transport_->sent.pop_front()) {
            const auto& [header, payload] = port_transport_->sent.front();
            direct::Handshake handshake;
            if (!read(header, direct::Kind::handshake, handshake)) continue;
            control::Message message;
            std::string problem;
            require(control::decode_message(payload, message, problem) == Status::ok,
                    "a port's answer is malformed");
            if (const auto* one = std::get_if<control::Challenge>(&message)) challenge_ = one->nonce;
            if (const auto* one = std::get_if<control::DirectWelcome>(&message)) token_ = one->token;
        }
    }
    // A request of which the input decides everything, or all but the names of what it reaches.
    direct::Request drawn(Input& input, std::vector<std::byte>& operands) const {
        const auto mended = input.take<std::uint8_t>();
        direct::Request made{};
        const auto raw = input.bytes(sizeof made);
        if (!raw.empty()) std::memcpy(static_cast<void*>(&made), raw.data(), raw.size());
        made.kind = direct::Kind::request;
        if ((mended & 1) != 0) made.token = token_;
        if ((mended & 2) != 0) {
            made.team = team_id;
            made.window = window_id;
            made.dest = 0;
            made.origin = 1;
        }
        if ((mended & 4) != 0) made.offset %= 2 * WindowMemory::bytes;
        if ((mended & 8) != 0) made.bytes %= 2048;
        if ((mended & 16) != 0) made.element = 0;
        std::size_t operand_bytes = input.below(600);
        if ((mended & 32) != 0 && made.bytes <= direct::piece_bytes && rma::is_kind(made.operation))
            operand_bytes = made.access().operand_bytes();
        operands = (mended & 64) != 0 ? input.payload(operand_bytes) : input.bytes(operand_bytes);
        return made;
    }

    WindowMemory memory_;
    std::unique_ptr<PlayedTransport> fabric_;
    engine::Engine engine_;
    engine::Session* session_ = nullptr;
    PlayedTransport* port_transport_ = nullptr;
    std::optional<proxy::DirectPort> port_;
    control::Secret secret_{};
    std::optional<control::Nonce> challenge_;
    std::uint64_t token_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::be_quiet();
    Input input(data, size);
    Scene scene;
    scene.call();
    scene.prove(true);
    while (!input.empty()) {
        switch (input.take<std::uint8_t>() % 16) {
            case 0:
                scene.call();
                break;
            case 1:
                scene.prove(true);
                break;
            case 2:
                scene.prove(false);
                break;
            case 3:
                scene.lose();
                break;
            case 4:
                scene.leave();
                break;
            case 5:
                scene.handshake(input);
                break;
            case 6:
                scene.anything(input);
                break;
            case 7:
            case 8:
            case 9:
                scene.bundle(input);
                break;
            default:
                scene.request(input);
        }
    }
    return 0;
}
