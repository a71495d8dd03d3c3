#include "link/outgoing.h"

namespace offpath::link {

static_assert(batch_bytes <= transport::Transport::max_post);
static_assert(header_bytes <= transport::Transport::max_header);

Status Outgoing::post(transport::Endpoint& to, const Header& header, std::span<const std::byte> payload) {
    if (payload.size() <= transport::Transport::max_post)
        return transport_.post(to, encode_header(header), payload);
    Record* const record = records_.take();
    record->own.assign(payload.begin(), payload.end());
    record->then = nullptr;
    const Status status = begin(to, header, record->own.data(), record->own.size(), record);
    return status == Status::in_progress ? Status::ok : status;
}

Status Outgoing::send(transport::Endpoint& to, const Header& header, const void* payload, std::size_t bytes,
                      Completion* then) {
    Record* const record = records_.take();
    record->then = then;
    return begin(to, header, payload, bytes, record);
}

Status Outgoing::begin(transport::Endpoint& to, const Header& header, const void* payload, std::size_t bytes,
                       Record* record) {
    // An endpoint learns only once it is wired up that payload should be pushed, so it is asked now and then.
    if ((sends_++ & 63) == 0) (void)transport_.push_bytes(to);
    record->function = &Outgoing::on_sent;
    record->owner = this;
    const Status status = transport_.send(to, encode_header(header), payload, bytes, record);
    if (status == Status::in_progress)
        ++in_flight_;
    else
        records_.give_back(record);
    return status;
}

void Outgoing::on_sent(Completion* self, Status status) {
    auto* const record = static_cast<Record*>(self);
    Outgoing& owner = *record->owner;
    Completion* const then = record->then;
    --owner.in_flight_;
    owner.records_.give_back(record);
    if (then != nullptr) (*then)(status);
}

}  // namespace offpath::link
