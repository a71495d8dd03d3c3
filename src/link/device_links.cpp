#include "link/device_links.h"

#include "base/log.h"
#include "link/address_and_key.h"
#include "link/device_ends.h"
#include "link/event_set.h"
#include "link/rings.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <unordered_map>

namespace offpath::link {
namespace {

class Links;

class Link final : public DeviceLink {
  public:
    Link(Links& links, std::shared_ptr<DevicePeer> peer) : links_(links), peer_(std::move(peer)) {}
    ~Link() override;

    std::vector<std::byte> address() const override;
    std::unique_ptr<control::ProxyChannel> take_channel() override {
        return std::make_unique<LinkProxyChannel>(peer_);
    }
    std::unique_ptr<memory::StagedTransfers> take_transfers() override {
        return std::make_unique<LinkTransfers>(peer_);
    }
    Status health(std::string& why) const override { return peer_->look(why); }

  private:
    Links& links_;
    std::shared_ptr<DevicePeer> peer_;
};

class Links final : public DeviceLinks, transport::Handler {
  public:
    Links(std::unique_ptr<transport::Transport> transport, std::unique_ptr<transport::OneSided> one_sided)
        : one_sided_(std::move(one_sided)), transport_(std::move(transport)) {
        transport_->set_handler(this);
        if (one_sided_ == nullptr) return;
        if (events_.open(transport_->event_fd(), one_sided_->event_fd()) == Status::ok) return;
        log::warn(Code::slower_way, "epoll: completions of remote clients go in messages");
        one_sided_.reset();
    }

    std::vector<std::byte> address() const override { return transport_->address(); }
    std::string describe() const override {
        return transport_->describe() + (one_sided_ != nullptr ? ", completions into the hosts' memory" : "");
    }
    Status open(std::span<const std::byte> client_address, std::uint64_t token,
                const control::ChannelSizes& sizes, std::unique_ptr<DeviceLink>& link,
                std::string& problem) override;
    unsigned progress() override;
    int event_fd() const override { return one_sided_ != nullptr ? events_.fd() : transport_->event_fd(); }
    Status arm() override {
        const Status status = transport_->arm();
        return status == Status::ok && one_sided_ != nullptr ? one_sided_->arm() : status;
    }
    Counters counters() const override;
    void close(const std::shared_ptr<DevicePeer>& peer);

  private:
    // Payload of commands or items that did not arrive with its header.
    struct Fetching : Completion {
        Links* owner = nullptr;
        std::shared_ptr<DevicePeer> peer;
        Header header;
        std::vector<std::byte> bytes;
    };

    Status open_rings(std::span<const std::byte> key, DevicePeer& peer);
    void on_message(const transport::Incoming& message) override;
    void on_endpoint_lost(transport::Endpoint& endpoint) override;
    void take(const std::shared_ptr<DevicePeer>& peer, const Header& header,
              const transport::Incoming& message);
    void take_payload(DevicePeer& peer, const Header& header, std::span<const std::byte> payload);
    void fetch(const std::shared_ptr<DevicePeer>& peer, const Header& header, void* rendezvous);
    static void on_fetched(Completion* self, Status status);

    std::unique_ptr<transport::OneSided> one_sided_;  // null: messages only; outlives its windows
    EventSet events_;
    std::unordered_map<std::uint64_t, std::shared_ptr<DevicePeer>> peers_;
    std::vector<std::shared_ptr<DevicePeer>> closing_;
    transport::FreeList<Fetching> fetches_;
    Counters counters_;
    std::unique_ptr<transport::Transport> transport_;  // last: its end calls the completions that it holds
};

Link::~Link() {
    links_.close(peer_);
}

std::vector<std::byte> Link::address() const {
    if (peer_->rings == nullptr) return links_.address();
    return join_address_and_key({links_.address(), peer_->rings->key()});
}

Status Links::open(std::span<const std::byte> client_address, std::uint64_t token,
                   const control::ChannelSizes& sizes, std::unique_ptr<DeviceLink>& link,
                   std::string& problem) {
    if (token == 0 || peers_.contains(token) || !control::acceptable(sizes)) {
        problem = "a link with a token that is 0 or in use, or a channel of unacceptable sizes";
        return Status::invalid;
    }
    auto peer = std::make_shared<DevicePeer>(*transport_, token, sizes);
    const AddressAndKey client = split_address_and_key(client_address);
    Status status = transport_->connect(client.address, &peer->ends.control);
    if (status == Status::ok) status = transport_->connect(client.address, &peer->ends.bulk);
    if (status == Status::ok && one_sided_ != nullptr && !client.key.empty())
        status = open_rings(client.key, *peer);
    if (status != Status::ok) {
        problem = fmt::format("the client's link address cannot be connected to from {}: {}",
                              transport_->describe(), to_string(status));
        peer->disconnect();
        return status;
    }
    peers_.emplace(token, peer);
    link = std::make_unique<Link>(*this, std::move(peer));
    return Status::ok;
}

// If the client's memory cannot be written from here, its completions go in messages. If its key is
// malformed, it gets no link.
Status Links::open_rings(std::span<const std::byte> key, DevicePeer& peer) {
    std::unique_ptr<transport::RemoteWindow> host;
    std::unique_ptr<transport::Window> own;
    const Status status = one_sided_->attach(key, host);
    if (status == Status::protocol) return status;
    if (status == Status::ok && host->bytes() != host_window_bytes(peer.sizes)) return Status::protocol;
    if (status != Status::ok || one_sided_->offer(device_window_bytes, own) != Status::ok) {
        log::info("completions of a remote client go in messages: its memory cannot be written: {}",
                  to_string(status));
        return Status::ok;
    }
    DeviceRings::Events events;
    events.ring = [&peer] { peer.send({}); };
    events.failed = [&peer] {
        peer.fail(Status::peer_lost, "the host's memory no longer takes completions");
    };
    peer.rings = std::make_unique<DeviceRings>(std::move(own), std::move(host), std::move(events));
    peer.rings->start();
    return Status::ok;
}

void Links::close(const std::shared_ptr<DevicePeer>& peer) {
    peers_.erase(peer->ends.token);
    peer->fail(Status::canceled, "the session has ended");
    peer->disconnect();
    counters_.bytes_to_device += peer->staging.bytes_to_device();
    counters_.bytes_to_host += peer->staging.bytes_to_host();
    if (peer->held()) closing_.push_back(peer);
}

unsigned Links::progress() {
    unsigned events = transport_->progress();
    if (one_sided_ != nullptr) events += one_sided_->progress();
    if (!closing_.empty()) std::erase_if(closing_, [](const auto& peer) { return !peer->held(); });
    return events;
}

DeviceLinks::Counters Links::counters() const {
    Counters counters = counters_;
    for (const auto& [token, peer] : peers_) {
        counters.bytes_to_device += peer->staging.bytes_to_device();
        counters.bytes_to_host += peer->staging.bytes_to_host();
    }
    return counters;
}

void Links::on_endpoint_lost(transport::Endpoint& endpoint) {
    for (const auto& [token, peer] : peers_) {
        if (peer->ends.control == &endpoint || peer->ends.bulk == &endpoint)
            peer->fail(Status::peer_lost, "the link to the host is broken");
    }
}

void Links::on_message(const transport::Incoming& message) {
    ++counters_.messages;
    Header header;
    const auto found =
        decode_header(message.header, message.bytes, header) ? peers_.find(header.token) : peers_.end();
    if (found == peers_.end() || found->second->health != Status::ok) {
        ++counters_.foreign;
        if (message.rendezvous != nullptr) transport_->discard(message.rendezvous);
        return;
    }
    try {
        take(found->second, header, message);
    } catch (const std::bad_alloc&) {
        found->second->fail(Status::memory, "the device has no memory left for what comes over the link");
    }
}

void Links::take(const std::shared_ptr<DevicePeer>& peer, const Header& header,
                 const transport::Incoming& message) {
    const bool ours =
        header.kind == Kind::commands || header.kind == Kind::data || header.kind == Kind::stored;
    if (ours && header.kind == Kind::data) {
        // on_data() takes the payload over only if it knows the request.
        if (peer->staging.on_data(header, message)) return;
    } else if (ours && message.rendezvous != nullptr) {
        fetch(peer, header, message.rendezvous);
        return;
    } else if (ours) {
        take_payload(*peer, header, {message.data, message.bytes});
        return;
    }
    peer->fail(Status::protocol, "a link message that was not asked for");
    if (message.rendezvous != nullptr) transport_->discard(message.rendezvous);
}

void Links::take_payload(DevicePeer& peer, const Header& header, std::span<const std::byte> payload) {
    const char* why = "a link message that was not asked for";
    const bool fine = header.kind == Kind::commands ? peer.commands.accept(header.position, payload, why)
                                                    : peer.staging.on_stored(payload, header.count);
    if (!fine) peer.fail(Status::protocol, why);
}

void Links::fetch(const std::shared_ptr<DevicePeer>& peer, const Header& header, void* rendezvous) {
    Fetching* fetching = nullptr;
    try {
        fetching = fetches_.take();
        fetching->bytes.resize(header.bytes);
    } catch (const std::bad_alloc&) {
        if (fetching != nullptr) fetches_.give_back(fetching);
        transport_->discard(rendezvous);
        throw;
    }
    fetching->function = &Links::on_fetched;
    fetching->owner = this;
    fetching->peer = peer;
    fetching->header = header;
    ++peer->fetching;
    const Status status = transport_->fetch(rendezvous, fetching->bytes.data(), header.bytes, fetching);
    if (status != Status::in_progress) on_fetched(fetching, status);
}

void Links::on_fetched(Completion* self, Status status) {
    auto* const fetching = static_cast<Fetching*>(self);
    Links& owner = *fetching->owner;
    const std::shared_ptr<DevicePeer> peer = std::move(fetching->peer);
    --peer->fetching;
    if (status != Status::ok)
        peer->fail(Status::peer_lost, "the link to the host is broken");
    else if (peer->health == Status::ok)
        owner.take_payload(*peer, fetching->header, fetching->bytes);
    owner.fetches_.give_back(fetching);
}

}  // namespace

std::unique_ptr<DeviceLinks> make_device_links(std::unique_ptr<transport::Transport> transport,
                                               std::unique_ptr<transport::OneSided> one_sided) {
    return std::make_unique<Links>(std::move(transport), std::move(one_sided));
}

}  // namespace offpath::link
