// Bundles. One-sided messages for the same proxy that arise in the same round of work travel as one message
// of the transport. Each message of the transport costs both proxies system calls; its content does not.
#include "base/log.h"
#include "engine/onesided/onesided.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace offpath::engine {

namespace {

// Below the size at which transports let the receiver fetch the payload (Transport::fetch).
constexpr std::size_t bundle_bytes = 60 << 10;

void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
    to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

void OneSided::tell(Peer& peer, std::span<const std::byte> header, std::span<const std::byte> payload,
                    std::span<const std::byte> more) {
    if (core_.peers.closed()) return;
    if (peer.self) {
        Local& message = local_.emplace_back();
        append(message.header, header);
        append(message.payload, payload);
        append(message.payload, more);
        return;
    }
    const std::size_t bytes = sizeof(Bundled) + header.size() + payload.size() + more.size();
    auto bundle = std::find_if(gathered_.begin(), gathered_.end(),
                               [&](const Bundle& each) { return each.peer == &peer; });
    if (bundle == gathered_.end()) {
        bundle = gathered_.insert(bundle, {&peer, 0, spare_buffer()});
    } else if (bundle->bytes.size() + bytes > bundle_bytes) {
        send(*bundle);
    }
    const Bundled sizes{static_cast<std::uint16_t>(header.size()),
                        static_cast<std::uint16_t>(payload.size() + more.size())};
    append(bundle->bytes, bytes_of(sizes));
    append(bundle->bytes, header);
    append(bundle->bytes, payload);
    append(bundle->bytes, more);
    ++bundle->messages;
}

// Sends the bundle's messages and leaves it empty.
void OneSided::send(Bundle& bundle) {
    const std::span<const std::byte> bytes(bundle.bytes);
    if (bundle.messages == 1) {
        Bundled sizes{};
        std::memcpy(&sizes, bytes.data(), sizeof sizes);
        const auto header = bytes.subspan(sizeof sizes, sizes.header_bytes);
        core_.peers.tell(*bundle.peer, header, bytes.subspan(sizeof sizes + header.size()));
    } else if (bytes.size() <= transport::Transport::max_post) {
        core_.peers.tell(*bundle.peer, bytes_of(OneSidedBundle{Kind::one_sided_bundle, bundle.messages}),
                         bytes);
    } else {
        send_large(bundle);
    }
    bundle.bytes.clear();
    bundle.messages = 0;
}

// The transport reads the bytes in place, so a parcel keeps them until it has.
void OneSided::send_large(Bundle& bundle) {
    if (core_.peers.closed() || !core_.peers.connect(*bundle.peer)) return;
    const OneSidedBundle header{Kind::one_sided_bundle, bundle.messages};
    Parcel& parcel = new_parcel(std::exchange(bundle.bytes, spare_buffer()));
    const Status status = core_.peers.transmit(*bundle.peer, bytes_of(header), parcel.bytes.data(),
                                               parcel.bytes.size(), &parcel);
    if (status == Status::in_progress) return;
    parcel_over(parcel, Status::ok);
    if (is_error(status)) core_.peers.not_sent(*bundle.peer, status);
}

std::vector<std::byte> OneSided::spare_buffer() {
    if (spare_.empty()) return {};
    std::vector<std::byte> buffer = std::move(spare_.back());
    spare_.pop_back();
    buffer.clear();
    return buffer;
}

OneSided::Parcel& OneSided::new_parcel(std::vector<std::byte> bytes) {
    Parcel* parcel = parcels_.take();
    parcel->function = [](Completion* self, Status status) {
        auto* over = static_cast<Parcel*>(self);
        over->home->parcel_over(*over, status);
    };
    parcel->home = this;
    parcel->bytes = std::move(bytes);
    return *parcel;
}

// Errors need no report here, because on_endpoint_lost() reports them.
void OneSided::parcel_over(Parcel& parcel, Status status) {
    if (parcel.from != nullptr && status == Status::ok)
        dispatch_bundle(parcel.header, parcel.bytes, *parcel.from);
    spare_.push_back(std::move(parcel.bytes));
    parcels_.give_back(&parcel);
}

bool OneSided::send_bundles() {
    if (gathered_.empty()) return false;
    for (Bundle& bundle : gathered_) {
        send(bundle);
        spare_.push_back(std::move(bundle.bytes));
    }
    gathered_.clear();
    return true;
}

void OneSided::forget(const Peer& peer) {
    (void)send_bundles();
    parcels_.for_each([&](Parcel& parcel) {
        if (parcel.from == &peer) parcel.from = nullptr;
    });
}

bool OneSided::take(std::span<const std::byte> header, const transport::Incoming& incoming, Peer& from) {
    if (kind_of(header) == Kind::one_sided_bundle) {
        take_bundle(header, incoming, from);
        return true;
    }
    OneSidedAnswer answer{};
    if (incoming.rendezvous != nullptr || !read(header, answer)) return false;
    on_answer(answer, {incoming.data, incoming.bytes}, from);
    return true;
}

void OneSided::take_bundle(std::span<const std::byte> header, const transport::Incoming& incoming,
                           Peer& from) {
    OneSidedBundle bundle{};
    const bool sound = read(header, bundle) && incoming.bytes <= bundle_bytes;
    if (incoming.rendezvous == nullptr && sound)
        return dispatch_bundle(bundle, {incoming.data, incoming.bytes}, from);
    if (!sound) {
        if (incoming.rendezvous != nullptr) core_.transport.discard(incoming.rendezvous);
        log::warn(Code::malformed, "a bundle of one-sided messages that has {} bytes was dropped",
                  incoming.bytes);
        return;
    }
    Parcel& parcel = new_parcel(spare_buffer());
    parcel.from = &from;
    parcel.header = bundle;
    parcel.bytes.resize(incoming.bytes);
    const Status status =
        core_.transport.fetch(incoming.rendezvous, parcel.bytes.data(), incoming.bytes, &parcel);
    if (status != Status::in_progress) parcel_over(parcel, status);
}

void OneSided::dispatch_bundle(OneSidedBundle bundle, std::span<const std::byte> payload, Peer& from) {
    bool sound = true;
    while (sound && bundle.messages-- > 0) {
        Bundled sizes{};
        sound = payload.size() >= sizeof sizes;
        if (!sound) break;
        std::memcpy(&sizes, payload.data(), sizeof sizes);
        payload = payload.subspan(sizeof sizes);
        sound = payload.size() >= std::size_t{sizes.header_bytes} + sizes.payload_bytes;
        if (!sound) break;
        const auto inner = payload.first(sizes.header_bytes);
        const auto inner_payload = payload.subspan(inner.size(), sizes.payload_bytes);
        payload = payload.subspan(inner.size() + sizes.payload_bytes);
        dispatch(inner, inner_payload, from);
    }
    if (!sound) log::warn(Code::malformed, "a malformed bundle of one-sided messages was dropped");
}

}  // namespace offpath::engine
