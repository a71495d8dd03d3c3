#include "link/choice/dual_transport.h"

#include "link/address_and_key.h"
#include "link/event_set.h"
#include "link/tagged_pair.h"
#include "transport/tcp/address.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace offpath::link {
namespace {

using transport::Endpoint;
using transport::Transport;

constexpr Letters letters = {'O', 'F', 'E', 'I'};

template <typename Way>
Status open_both(EventSet& events, const Way& ucx, const Way& tcp, std::string& problem) {
    const Status status = events.open(ucx.event_fd(), tcp.event_fd());
    if (status != Status::ok) problem = fmt::format("epoll: {}", std::strerror(errno));
    return status;
}

class EitherTransport final : public Transport {
  public:
    EitherTransport(std::unique_ptr<Transport> ucx, std::unique_ptr<Transport> tcp)
        : ucx_(std::move(ucx)), tcp_(std::move(tcp)) {}
    Status open(std::string& problem) { return open_both(events_, *ucx_, *tcp_, problem); }

    void set_handler(transport::Handler* handler) override {
        for (Transport* each : {ucx_.get(), tcp_.get()})
            if (each != nullptr) each->set_handler(handler);
    }
    std::vector<std::byte> address() const override {
        if (chosen_ != nullptr) return chosen_->address();
        const auto ucx = ucx_->address(), tcp = tcp_->address();
        return join_addresses({ucx, tcp});
    }
    Status connect(std::span<const std::byte> address, Endpoint** endpoint) override {
        if (chosen_ == nullptr) {
            const bool tcp = transport::tcp::is_address(address);
            chosen_ = tcp ? tcp_.get() : ucx_.get();
            // The descriptor of the other transport leaves the event set when that transport ends.
            (tcp ? ucx_ : tcp_).reset();
        }
        return chosen_->connect(address, endpoint);
    }
    void disconnect(Endpoint* endpoint) override { chosen_->disconnect(endpoint); }
    Status post(Endpoint& endpoint, std::span<const std::byte> header,
                std::span<const std::byte> payload) override {
        return chosen_->post(endpoint, header, payload);
    }
    Status send(Endpoint& endpoint, std::span<const std::byte> header, const void* payload, std::size_t bytes,
                Completion* completion) override {
        return chosen_->send(endpoint, header, payload, bytes, completion);
    }
    std::size_t push_bytes(Endpoint& endpoint) override { return chosen_->push_bytes(endpoint); }
    Status fetch(void* rendezvous, void* destination, std::size_t bytes, Completion* completion) override {
        return chosen_->fetch(rendezvous, destination, bytes, completion);
    }
    void discard(void* rendezvous) override {
        // Before a transport is chosen, the message comes from a stranger that knows UCX's address.
        (chosen_ != nullptr ? chosen_ : ucx_.get())->discard(rendezvous);
    }
    bool checks_memory() const override { return chosen_ != nullptr && chosen_->checks_memory(); }
    unsigned progress() override {
        if (chosen_ != nullptr) return chosen_->progress();
        return ucx_->progress() + tcp_->progress();
    }
    int event_fd() const override { return events_.fd(); }
    Status arm() override {
        if (chosen_ != nullptr) return chosen_->arm();
        const Status status = ucx_->arm();
        return status == Status::ok ? tcp_->arm() : status;
    }
    std::string describe() const override {
        if (chosen_ != nullptr) return chosen_->describe();
        return ucx_->describe() + " or " + tcp_->describe();
    }

  private:
    std::unique_ptr<Transport> ucx_, tcp_;
    Transport* chosen_ = nullptr;
    EventSet events_;
};

class EitherLinks final : public DeviceLinks {
  public:
    EitherLinks(std::unique_ptr<DeviceLinks> ucx, std::unique_ptr<DeviceLinks> tcp)
        : ucx_(std::move(ucx)), tcp_(std::move(tcp)) {}
    Status open(std::string& problem) { return open_both(events_, *ucx_, *tcp_, problem); }
    std::vector<std::byte> address() const override { return ucx_->address(); }
    std::string describe() const override { return ucx_->describe() + " or " + tcp_->describe(); }
    Status open(std::span<const std::byte> client_address, std::uint64_t token,
                const control::ChannelSizes& sizes, std::unique_ptr<DeviceLink>& link,
                std::string& problem) override {
        const auto address = split_address_and_key(client_address).address;
        DeviceLinks& way = split_addresses(address).ucx.empty() ? *tcp_ : *ucx_;
        return way.open(client_address, token, sizes, link, problem);
    }
    unsigned progress() override { return ucx_->progress() + tcp_->progress(); }
    int event_fd() const override { return events_.fd(); }
    Status arm() override {
        const Status status = ucx_->arm();
        return status == Status::ok ? tcp_->arm() : status;
    }
    Counters counters() const override {
        Counters sum = ucx_->counters();
        const Counters tcp = tcp_->counters();
        sum.messages += tcp.messages;
        sum.foreign += tcp.foreign;
        sum.bytes_to_device += tcp.bytes_to_device;
        sum.bytes_to_host += tcp.bytes_to_host;
        return sum;
    }

  private:
    std::unique_ptr<DeviceLinks> ucx_, tcp_;
    EventSet events_;
};

// Serves hosts over one transport, also those that offer both.
class OneWay final : public DeviceLinks {
  public:
    OneWay(std::unique_ptr<DeviceLinks> links, bool ucx) : links_(std::move(links)), ucx_(ucx) {}
    std::vector<std::byte> address() const override { return links_->address(); }
    std::string describe() const override { return links_->describe(); }
    Status open(std::span<const std::byte> client_address, std::uint64_t token,
                const control::ChannelSizes& sizes, std::unique_ptr<DeviceLink>& link,
                std::string& problem) override {
        const AddressAndKey client = split_address_and_key(client_address);
        const BothAddresses both = split_addresses(client.address);
        const auto ours = ucx_ ? both.ucx : both.tcp;
        if (ours.empty() && !client.address.empty()) {
            problem = fmt::format("the device's links go over {}, the client's do not (OFFPATH_LINK)",
                                  ucx_ ? "UCX" : "plain TCP");
            return Status::unavailable;
        }
        return links_->open(join_address_and_key({ours, client.key}), token, sizes, link, problem);
    }
    unsigned progress() override { return links_->progress(); }
    int event_fd() const override { return links_->event_fd(); }
    Status arm() override { return links_->arm(); }
    Counters counters() const override { return links_->counters(); }

  private:
    std::unique_ptr<DeviceLinks> links_;
    bool ucx_;
};

}  // namespace

std::vector<std::byte> join_addresses(const BothAddresses& addresses) {
    return join_pair(letters, {addresses.ucx, addresses.tcp});
}

BothAddresses split_addresses(std::span<const std::byte> bytes) {
    if (transport::tcp::is_address(bytes)) return {{}, bytes};
    const auto pair = split_pair(letters, bytes);
    return pair ? BothAddresses{pair->first, pair->second} : BothAddresses{bytes, {}};
}

Status make_either_transport(std::unique_ptr<Transport> ucx, std::unique_ptr<Transport> tcp,
                             std::unique_ptr<Transport>& transport, std::string& problem) {
    auto made = std::make_unique<EitherTransport>(std::move(ucx), std::move(tcp));
    if (const Status status = made->open(problem); status != Status::ok) return status;
    transport = std::move(made);
    return Status::ok;
}

Status make_either_links(std::unique_ptr<Transport> ucx, std::unique_ptr<Transport> tcp,
                         std::unique_ptr<transport::OneSided> one_sided, std::unique_ptr<DeviceLinks>& links,
                         std::string& problem) {
    const bool over_ucx = ucx != nullptr, over_tcp = tcp != nullptr;
    std::unique_ptr<DeviceLinks> first, second;
    if (over_ucx)
        first = std::make_unique<OneWay>(make_device_links(std::move(ucx), std::move(one_sided)), true);
    if (over_tcp) second = std::make_unique<OneWay>(make_device_links(std::move(tcp), nullptr), false);
    if (!over_ucx || !over_tcp) {
        links = std::move(over_ucx ? first : second);
        return Status::ok;
    }
    auto made = std::make_unique<EitherLinks>(std::move(first), std::move(second));
    if (const Status status = made->open(problem); status != Status::ok) return status;
    links = std::move(made);
    return Status::ok;
}

}  // namespace offpath::link
