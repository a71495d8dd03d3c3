#include "link/device_ends.h"

#include "base/log.h"
#include "link/release.h"

namespace offpath::link {

LinkProxyChannel::LinkProxyChannel(std::shared_ptr<DevicePeer> peer)
    : ProxyChannel(peer->sizes.completions), peer_(std::move(peer)) {
    items_.reserve(batch_bytes);
}

control::NextRecord LinkProxyChannel::next(std::span<const std::byte>& record) {
    CommandStream& commands = peer_->commands;
    if (!commands.has_records()) return Next::none;
    const Next next = commands.next(record);
    if (commands.taken() - peer_->told >= peer_->sizes.ring_bytes / 2) peer_->tell({});
    return next;
}

void LinkProxyChannel::complete(std::uint32_t slot, Status status, std::uint32_t source, std::uint32_t tag,
                                std::uint64_t bytes) {
    if (items_.size() + wire_bytes<CompletionItem> > batch_bytes) wake();
    const CompletionItem item{slot, control::completion_word(status), source, tag, bytes};
    items_.resize(items_.size() + wire_bytes<CompletionItem>);
    encode_item(item, std::span(items_).last(wire_bytes<CompletionItem>));
}

void LinkProxyChannel::wake() {
    if (items_.empty()) return;
    peer_->tell(items_);
    items_.clear();
}

Status LinkTransfers::health() const {
    std::string why;
    return peer_->look(why);
}

void LinkTransfers::abandon(Status reason) {
    if (peer_->staging.drained()) {
        peer_->staging.stop(reason);
        return;
    }
    peer_->fail(reason, "the session has ended");
    peer_->disconnect();
    progress_until_released(peer_->ends.transport, [this] { return peer_->held(); });
    if (peer_->held())
        log::warn(Code::network_end, "the transport holds on to {} sends of a link that has ended",
                  peer_->out.in_flight());
    peer_->staging.abandon(reason);
}

}  // namespace offpath::link
