// One-sided messages that come up in the same round of work, for the same proxy, are one message of the
// transport: a message costs both proxies system calls, what is in it does not.
#include "base/log.h"
#include "engine/onesided.h"

#include <algorithm>

namespace offpath::engine {

namespace {

constexpr std::size_t most_bytes = transport::Transport::max_post;

void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
    to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

void OneSided::tell(Peer& peer, std::span<const std::byte> header, std::span<const std::byte> payload) {
    if (engine_.closed) return;
    if (peer.self)
        return local_.push_back({{header.begin(), header.end()}, {payload.begin(), payload.end()}});
    const std::size_t bytes = sizeof(Bundled) + header.size() + payload.size();
    if (bytes > most_bytes) return engine_.tell(peer, header, payload);
    auto bundle = std::find_if(gathered_.begin(), gathered_.end(),
                               [&](const Bundle& each) { return each.peer == &peer; });
    if (bundle == gathered_.end()) {
        bundle = gathered_.insert(bundle, {&peer, 0, {}});
        if (!spare_.empty()) {
            bundle->bytes = std::move(spare_.back());
            spare_.pop_back();
        }
    } else if (bundle->bytes.size() + bytes > most_bytes) {
        send(*bundle);
    }
    const Bundled sizes{static_cast<std::uint16_t>(header.size()),
                        static_cast<std::uint16_t>(payload.size())};
    append(bundle->bytes, bytes_of(sizes));
    append(bundle->bytes, header);
    append(bundle->bytes, payload);
    ++bundle->messages;
}

// It is empty then.
void OneSided::send(Bundle& bundle) {
    const std::span<const std::byte> bytes(bundle.bytes);
    if (bundle.messages == 1) {
        Bundled sizes{};
        std::memcpy(&sizes, bytes.data(), sizeof sizes);
        const auto header = bytes.subspan(sizeof sizes, sizes.header_bytes);
        engine_.tell(*bundle.peer, header, bytes.subspan(sizeof sizes + header.size()));
    } else {
        engine_.tell(*bundle.peer, bytes_of(OneSidedBundle{Kind::one_sided_bundle, bundle.messages}), bytes);
    }
    bundle.bytes.clear();
    bundle.messages = 0;
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

void OneSided::dispatch_bundle(std::span<const std::byte> header, std::span<const std::byte> payload) {
    OneSidedBundle bundle{};
    bool sound = read(header, bundle);
    while (sound && bundle.messages-- > 0) {
        Bundled sizes{};
        sound = payload.size() >= sizeof sizes;
        if (!sound) break;
        std::memcpy(&sizes, payload.data(), sizeof sizes);
        payload = payload.subspan(sizeof sizes);
        sound = payload.size() >= std::size_t{sizes.header_bytes} + sizes.payload_bytes;
        if (!sound) break;
        const auto inner = payload.first(sizes.header_bytes);
        transport::Incoming message;
        message.header = inner;
        message.bytes = sizes.payload_bytes;
        message.data = payload.data() + sizes.header_bytes;
        payload = payload.subspan(inner.size() + sizes.payload_bytes);
        dispatch(inner, &message);
    }
    if (!sound) log::warn("a malformed bundle of one-sided messages was dropped");
}

}  // namespace offpath::engine
