// The parts of an encrypting transport. encrypted.cpp has its calls, arrivals.cpp what comes from the
// transport below, doubts.cpp how a message that is missing is noticed.
#pragma once

#include "base/log_limit.h"
#include "transport/encrypted/encrypted.h"
#include "transport/encrypted/format.h"
#include "transport/encrypted/peer.h"
#include "transport/free_list.h"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace offpath::transport::encrypted {

struct EncryptedEndpoint final : Endpoint {
    Endpoint* below = nullptr;  // null: lost by this transport
    std::shared_ptr<Peer> peer;
    std::uint32_t stream = 0;
    std::uint64_t next = 0;  // number of the next message in the stream
    bool lost = false;
};

class EncryptedTransport final : public Transport, Handler {
  public:
    explicit EncryptedTransport(std::unique_ptr<Transport> below);
    ~EncryptedTransport() override;

    void set_handler(Handler* handler) override { handler_ = handler; }
    std::vector<std::byte> address() const override;
    Status connect(std::span<const std::byte> address, Endpoint** endpoint) override;
    void disconnect(Endpoint* endpoint) override;
    Status post(Endpoint& endpoint, std::span<const std::byte> header,
                std::span<const std::byte> payload) override;
    Status send(Endpoint& endpoint, std::span<const std::byte> header, const void* payload, std::size_t bytes,
                Completion* completion) override;
    std::size_t push_bytes(Endpoint& endpoint) override;
    void hold(Endpoint& endpoint) override;
    void let_go(Endpoint& endpoint) override;
    Status fetch(void* rendezvous, void* destination, std::size_t bytes, Completion* completion) override;
    void discard(void* rendezvous) override;
    std::size_t unsent(const Endpoint& endpoint) const override;
    bool only_streams() const override { return below_->only_streams(); }
    unsigned progress() override;
    int event_fd() const override { return below_->event_fd(); }
    Status arm() override;
    std::string describe() const override;

  private:
    // A payload on its way to the transport below.
    struct Sending : Completion {
        EncryptedTransport* owner = nullptr;
        Completion* user = nullptr;
        std::unique_ptr<std::byte[]> bytes;
        std::size_t room = 0;
    };
    // A payload that the transport below holds, until it has been fetched or discarded.
    struct Arrival : Completion {
        EncryptedTransport* owner = nullptr;
        Completion* user = nullptr;
        std::shared_ptr<Peer> peer;
        void* below = nullptr;
        Cipher cipher = Cipher::chacha20_poly1305;
        Nonce nonce;
        Tag tag{};
        std::size_t bytes = 0;
        std::byte* destination = nullptr;
    };
    // A peer whose messages may not all have come.
    struct Doubt {
        std::shared_ptr<Peer> peer;
        std::uint64_t since_ns = 0;
        Position gap;  // not all messages before this one have come
        bool asked = false, answered = false;
        std::vector<Position> positions;  // what the peer says that it has sent
    };

    // Handler of the transport below.
    void on_message(const Incoming& message) override;
    void on_endpoint_lost(Endpoint& below) override;

    static EncryptedEndpoint& ours(Endpoint& endpoint) { return static_cast<EncryptedEndpoint&>(endpoint); }
    // Encrypts both, the payload to `room`, and returns the header for the transport below. It is valid until
    // the next call.
    std::span<const std::byte> encrypt(EncryptedEndpoint& to, Kind kind, std::span<const std::byte> header,
                                       std::span<const std::byte> payload, std::byte* room);
    // A message that was not sent leaves a gap in its stream, so another stream begins.
    Status sent(EncryptedEndpoint& to, Status status);
    static void on_sent(Completion* sending, Status status);
    void give_back(Sending* sending);

    std::shared_ptr<Peer> peer_of(const PublicKey& key);
    // Remembers a peer whose message was authentic. False: there are too many.
    bool keep(const std::shared_ptr<Peer>& peer);
    // A peer to which no endpoint leads has taken memory for keys.
    void has_grown();
    void refuse(const char* why, const PublicKey& sender);
    // Decrypts the header, and a payload that came with it into opened_. False: one of them is not authentic.
    bool open(const Incoming& message, const Clear& clear, const Keys& keys, std::span<std::byte> header);
    void deliver(const Incoming& message, std::span<const std::byte> header, const Clear& clear,
                 const std::shared_ptr<Peer>& peer);
    Status decrypt(Arrival& arrival);
    static void on_fetched(Completion* arrival, Status status);
    void give_back(Arrival* arrival);

    EncryptedEndpoint* endpoint_to(const Peer& peer);
    void say(EncryptedEndpoint& to, Kind kind, std::span<const std::byte> header);
    void doubt(const std::shared_ptr<Peer>& peer, const Position& gap);
    // False: there is no way to ask.
    bool ask(Doubt& doubt);
    void answer(const Peer& peer);
    void on_answer(const Peer& peer, std::span<const std::byte> header);
    bool is_settled(Doubt& doubt, std::uint64_t now_ns);
    void settle_doubts();
    void lose(const Peer& peer, const char* why);
    unsigned report_losses();

    KeyPair keys_;
    std::unique_ptr<Transport> below_;
    Handler* handler_ = nullptr;
    std::vector<std::unique_ptr<EncryptedEndpoint>> endpoints_;
    std::map<PublicKey, std::shared_ptr<Peer>> peers_;
    std::uint64_t uses_ = 0;
    std::size_t grown_ = 0;  // calls of has_grown() that may have left something to give back
    std::uint32_t streams_ = 0;
    FreeList<Sending> sending_;
    FreeList<Arrival> arrivals_;
    std::array<std::byte, max_wire_header> header_;
    std::vector<std::byte> posted_ = std::vector<std::byte>(max_post);
    std::vector<std::byte> opened_;  // the payload that came with the message that is being delivered
    std::vector<Doubt> doubts_;
    std::vector<EncryptedEndpoint*> losses_;  // on_endpoint_lost is due
    bool in_progress_ = false;
    LogLimit lines_;
};

}  // namespace offpath::transport::encrypted
