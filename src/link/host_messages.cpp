// Messages from the device: completions, and requests for the program's memory.
#include "link/host.h"

namespace offpath::link {

void Host::on_message(const transport::Incoming& message) {
    messages_.fetch_add(1, std::memory_order_relaxed);
    Header header;
    const bool ours = !closed_ && token_ != 0 && decode_header(message.header, message.bytes, header) &&
                      header.token == token_;
    const bool expected = ours && (header.kind == Kind::completions || header.kind == Kind::fetch ||
                                   header.kind == Kind::store || header.kind == Kind::copy);
    if (!expected || lost_.load(std::memory_order_relaxed)) {
        foreign_.fetch_add(1, std::memory_order_relaxed);
        if (message.rendezvous != nullptr) transport_->discard(message.rendezvous);
        if (ours && !expected) fail("the device sends messages that it must not send");
        return;
    }
    if (header.kind == Kind::store) {
        if (staging_.on_store(header, message) != Status::ok) fail("staging over the link failed");
    } else if (message.rendezvous != nullptr) {
        fetch(header, message.rendezvous);
    } else {
        take_payload(header, {message.data, message.bytes});
    }
}

void Host::take_payload(const Header& header, std::span<const std::byte> payload) {
    if (header.kind == Kind::completions) {
        if (channel_ != nullptr && !channel_->on_completions(header, payload))
            fail("the device sends completions that make no sense");
        return;
    }
    const Status status = header.kind == Kind::copy ? staging_.on_copy(payload, header.count)
                                                    : staging_.on_fetch(payload, header.count);
    if (status != Status::ok)
        fail(status == Status::protocol ? "the device asks for memory in pieces that are not accepted"
                                        : "the link to the device no longer takes messages");
}

void Host::fetch(const Header& header, void* rendezvous) {
    Fetching* const fetching = fetches_.take();
    fetching->function = &Host::on_fetched;
    fetching->owner = this;
    fetching->header = header;
    fetching->bytes.resize(header.bytes);
    ++fetching_;
    const Status status = transport_->fetch(rendezvous, fetching->bytes.data(), header.bytes, fetching);
    if (status != Status::in_progress) on_fetched(fetching, status);
}

void Host::on_fetched(Completion* self, Status status) {
    auto* const fetching = static_cast<Fetching*>(self);
    Host& owner = *fetching->owner;
    --owner.fetching_;
    if (status != Status::ok)
        owner.fail("the link to the device is broken");
    else if (!owner.closed_)
        owner.take_payload(fetching->header, fetching->bytes);
    owner.fetches_.give_back(fetching);
}

void Host::on_endpoint_lost(transport::Endpoint&) {
    fail("the link to the device is broken");
}

}  // namespace offpath::link
