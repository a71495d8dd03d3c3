#include "client/exchange_link.h"

#include "base/log.h"
#include "transport/tcp/address.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace offpath::client {
namespace {

std::span<const std::byte> bytes_of(const ExchangeHeader& header) {
    return std::as_bytes(std::span(&header, 1));
}

bool read_header(const transport::Incoming& message, ExchangeHeader& header) {
    if (message.header.size() != sizeof header) return false;
    std::memcpy(&header, message.header.data(), sizeof header);
    return true;
}

Status read_handshake(const transport::Incoming& message, control::Message& handshake, std::string& problem) {
    if (message.rendezvous != nullptr) return Status::protocol;
    return control::decode_message({message.data, message.bytes}, handshake, problem);
}

Status make_transport(bool listen, transport::Handler& handler,
                      std::unique_ptr<transport::Transport>& transport, std::string& problem) {
    transport::TcpConfig config;
    config.listen = listen;
    const Status status = transport::make_tcp_transport(config, transport, problem);
    if (status == Status::ok) transport->set_handler(&handler);
    return status;
}

}  // namespace

std::vector<std::byte> ExchangeRecord::bytes() const {
    std::vector<std::byte> result(secret.begin(), secret.end());
    result.insert(result.end(), address.begin(), address.end());
    return result;
}

bool ExchangeRecord::read(std::span<const std::byte> from) {
    if (from.size() <= secret.size()) return false;
    std::copy_n(from.begin(), secret.size(), secret.begin());
    const auto rest = from.subspan(secret.size());
    address.assign(rest.begin(), rest.end());
    return transport::tcp::is_address(address);
}

ExchangeInput::ExchangeInput() {
    function = [](Completion* self, Status status) {
        auto& input = *static_cast<ExchangeInput*>(self);
        input.running = false;
        (status == Status::ok ? input.complete : input.failed) = true;
    };
}

void ExchangeInput::take(transport::Transport& transport, const transport::Incoming& message) {
    if (running || complete) {
        failed = true;
        if (message.rendezvous != nullptr) transport.discard(message.rendezvous);
        return;
    }
    bytes.resize(message.bytes);
    if (message.rendezvous == nullptr) {
        std::copy_n(message.data, message.bytes, bytes.begin());
        complete = true;
        return;
    }
    running = true;
    const Status status = transport.fetch(message.rendezvous, bytes.data(), bytes.size(), this);
    if (status != Status::in_progress) (*this)(status);
}

bool ExchangeInput::take_out(std::span<std::byte> to) {
    if (bytes.size() != to.size()) return false;
    std::copy(bytes.begin(), bytes.end(), to.begin());
    control::wipe(bytes);
    complete = false;
    return true;
}

ExchangeOutput::ExchangeOutput() {
    function = [](Completion* self, Status status) {
        auto& output = *static_cast<ExchangeOutput*>(self);
        --output.running;
        output.failed = output.failed || status != Status::ok;
    };
}

Status ExchangeOutput::send(transport::Transport& transport, transport::Endpoint& endpoint,
                            const ExchangeHeader& header, std::span<const std::byte> data) {
    ++running;
    const Status status = transport.send(endpoint, bytes_of(header), data.data(), data.size(), this);
    if (status != Status::in_progress) --running;
    return is_error(status) ? status : Status::ok;
}

ExchangeTree::Up::~Up() {
    if (transport_ != nullptr) transport_->set_handler(nullptr);
    transport_.reset();  // ends outstanding transfers through our records
    control::wipe(secret_);
}

Status ExchangeTree::Up::call(std::uint32_t rank, std::uint32_t parent, const ExchangeRecord& record,
                              std::string& problem) {
    rank_ = rank;
    parent_ = parent;
    secret_ = record.secret;
    if (Status status = make_transport(false, *this, transport_, problem); status != Status::ok)
        return status;
    if (transport_->connect(record.address, &endpoint_) != Status::ok) return Status::unavailable;
    say(control::DirectCall{transport_->address()});
    return Status::ok;
}

void ExchangeTree::Up::say(const control::Message& message) {
    const ExchangeHeader header{ExchangeHeader::Kind::handshake, rank_, 0};
    (void)transport_->post(*endpoint_, bytes_of(header), control::encode_message(message));
}

Status ExchangeTree::Up::send(std::span<const std::byte> data) {
    if (lost_) return Status::peer_lost;
    return output_.send(*transport_, *endpoint_, {ExchangeHeader::Kind::data, rank_, token_}, data);
}

void ExchangeTree::Up::on_message(const transport::Incoming& message) {
    ExchangeHeader header;
    const bool known = read_header(message, header);
    if (known && header.kind == ExchangeHeader::Kind::data && go_ && header.token == token_)
        return input.take(*transport_, message);
    control::Message handshake;
    std::string problem;
    if (known && header.kind == ExchangeHeader::Kind::handshake &&
        read_handshake(message, handshake, problem) == Status::ok)
        return on_handshake(handshake);
    if (message.rendezvous != nullptr) transport_->discard(message.rendezvous);
    if (known && header.kind == ExchangeHeader::Kind::go && token_ != 0) go_ = header.token == token_;
}

void ExchangeTree::Up::on_handshake(const control::Message& message) {
    if (const auto* challenge = std::get_if<control::Challenge>(&message);
        challenge != nullptr && token_ == 0) {
        challenge_ = challenge->nonce;
        nonce_ = control::draw_nonce();
        control::DirectProof proof{challenge_, nonce_, 0, 0, rank_, parent_, {}};
        proof.mac = control::handshake_mac(secret_, challenge_, nonce_, proof);
        say(proof);
    } else if (const auto* welcome = std::get_if<control::DirectWelcome>(&message);
               welcome != nullptr && token_ == 0) {
        const bool right =
            control::same(welcome->mac, control::handshake_mac(secret_, challenge_, nonce_, *welcome));
        if (right) token_ = welcome->token;
        lost_ = lost_ || !right;
    }
}

ExchangeTree::Down::Down(std::uint32_t rank, std::span<const TreePlace::Child> children)
    : rank_(rank), children_(children.size()) {
    for (std::size_t i = 0; i < children.size(); ++i)
        children_[i].rank = children[i].rank;
}

ExchangeTree::Down::~Down() {
    if (transport_ != nullptr) transport_->set_handler(nullptr);
    transport_.reset();  // ends outstanding transfers through our records
    control::wipe(secret_);
}

Status ExchangeTree::Down::open(std::string& problem) {
    return make_transport(true, *this, transport_, problem);
}

ExchangeRecord ExchangeTree::Down::record() const {
    return {secret_, transport_->address()};
}

std::size_t ExchangeTree::Down::first_absent() const {
    const auto absent = [](const Child& child) { return child.token == 0; };
    return static_cast<std::size_t>(std::find_if(children_.begin(), children_.end(), absent) -
                                    children_.begin());
}

Status ExchangeTree::Down::go() {
    for (Child& child : children_) {
        const ExchangeHeader header{ExchangeHeader::Kind::go, child.rank, child.token};
        if (child.token == 0 || transport_->post(*child.endpoint, bytes_of(header), {}) != Status::ok)
            return Status::peer_lost;
    }
    return Status::ok;
}

Status ExchangeTree::Down::send(std::size_t child, std::span<const std::byte> data) {
    const Child& to = children_[child];
    if (to.token == 0) return Status::peer_lost;
    return output_.send(*transport_, *to.endpoint, {ExchangeHeader::Kind::data, to.rank, to.token}, data);
}

ExchangeTree::Down::Child* ExchangeTree::Down::find(std::uint32_t rank) {
    const auto found = std::find_if(children_.begin(), children_.end(),
                                    [&](const Child& child) { return child.rank == rank; });
    return found == children_.end() ? nullptr : &*found;
}

void ExchangeTree::Down::on_message(const transport::Incoming& message) {
    ExchangeHeader header;
    Child* const child = read_header(message, header) ? find(header.rank) : nullptr;
    if (child != nullptr && header.kind == ExchangeHeader::Kind::data && header.token == child->token &&
        header.token != 0)
        return child->input.take(*transport_, message);
    control::Message handshake;
    if (child != nullptr && header.kind == ExchangeHeader::Kind::handshake) {
        std::string problem;
        const Status status = read_handshake(message, handshake, problem);
        if (status == Status::version) other_version_ = fmt::format("rank {}: {}", child->rank, problem);
        if (status != Status::ok && message.rendezvous != nullptr) transport_->discard(message.rendezvous);
        if (status != Status::ok) return;
        if (const auto* call = std::get_if<control::DirectCall>(&handshake))
            on_call(header.rank, *call);
        else if (const auto* proof = std::get_if<control::DirectProof>(&handshake))
            on_proof(*child, *proof);
        return;
    }
    if (message.rendezvous != nullptr) transport_->discard(message.rendezvous);
}

void ExchangeTree::Down::on_call(std::uint32_t rank, const control::DirectCall& call) {
    // Answer only over the connection that the caller has made.
    transport::tcp::Address address;
    std::string problem;
    if (transport::tcp::decode(call.address, address, problem) != Status::ok || address.port != 0) return;
    transport::Endpoint* endpoint = nullptr;
    if (transport_->connect(call.address, &endpoint) != Status::ok) return;
    Child& child = *find(rank);
    // The next program's process of the same rank made this call; it will call again.
    if (child.endpoint != nullptr) return transport_->disconnect(endpoint);
    child.endpoint = endpoint;
    child.challenge = control::draw_nonce();
    say(child, control::Challenge{child.challenge});
}

void ExchangeTree::Down::on_proof(Child& child, const control::DirectProof& proof) {
    if (child.endpoint == nullptr || child.token != 0 || proof.challenge != child.challenge) return;
    if (proof.rank != child.rank || proof.target != rank_ ||
        !control::same(proof.mac, control::handshake_mac(secret_, proof.challenge, proof.nonce, proof))) {
        log::warn(Code::ranks_apart,
                  "a process that called itself rank {} does not know what rank {} has published", child.rank,
                  rank_);
        return drop(child);
    }
    child.token = control::draw_token();
    control::DirectWelcome welcome{child.token, {}};
    welcome.mac = control::handshake_mac(secret_, proof.challenge, proof.nonce, welcome);
    say(child, welcome);
}

void ExchangeTree::Down::say(Child& child, const control::Message& message) {
    const ExchangeHeader header{ExchangeHeader::Kind::handshake, child.rank, 0};
    (void)transport_->post(*child.endpoint, bytes_of(header), control::encode_message(message));
}

void ExchangeTree::Down::drop(Child& child) {
    child.token = 0;
    transport_->disconnect(std::exchange(child.endpoint, nullptr));
}

void ExchangeTree::Down::on_endpoint_lost(transport::Endpoint& endpoint) {
    for (Child& child : children_)
        if (child.endpoint == &endpoint) return drop(child);
}

}  // namespace offpath::client
