#include "transport/ucx/worker.h"

#include "transport/ucx/status.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>

namespace offpath::transport::ucx {

// begin() and begun() enclose calls of UCX that may keep `record`. UCX may complete the operation inside the
// call, by callback or by its return value. Then begun() returns the status of the operation.
template <typename Record>
void UcxTransport::begin(Record* record, Completion* completion) {
    record->owner = this;
    record->completion = completion;
    record->status = UCS_INPROGRESS;
    calling_ = record;
}

template <typename Record>
Status UcxTransport::begun(Record* record, FreeList<Record>& home, void* request) {
    calling_ = nullptr;
    if (UCS_PTR_IS_PTR(request) && record->status == UCS_INPROGRESS) {
        out_.add(record);
        return Status::in_progress;
    }
    const ucs_status_t status = UCS_PTR_IS_PTR(request) ? record->status : UCS_PTR_RAW_STATUS(request);
    home.give_back(record);
    return from_ucs(status);
}

template <typename Record>
void UcxTransport::over(Record* record, FreeList<Record>& home, ucs_status_t status) {
    if (calling_ == record) {
        record->status = status;
        return;
    }
    Completion* completion = record->completion;
    out_.remove(record);
    home.give_back(record);
    if (completion) finish(completion, from_ucs(status));
}

Status UcxTransport::post(Endpoint& endpoint, std::span<const std::byte> header,
                          std::span<const std::byte> payload) {
    auto& to = static_cast<UcxEndpoint&>(endpoint);
    if (header.size() > max_wire_header || payload.size() > max_post) return Status::invalid;
    if (to.local) return local_->post(*to.local, header, payload);
    if (!to.ep || to.error != UCS_OK) return Status::peer_lost;

    PostRecord* record = posts_.take();
    std::memcpy(record->bytes.data(), header.data(), header.size());
    if (!payload.empty()) std::memcpy(record->bytes.data() + header.size(), payload.data(), payload.size());
    ucp_request_param_t param = ucx::host_memory_params(record);
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_AM_SEND_FLAG_EAGER;
    param.cb.send = &UcxTransport::on_posted;
    begin(record, nullptr);
    void* request = ucp_am_send_nbx(to.ep, am_id, record->bytes.data(), header.size(),
                                    record->bytes.data() + header.size(), payload.size(), &param);
    const Status status = begun(record, posts_, request);
    return status == Status::in_progress ? Status::ok : status;
}
void UcxTransport::on_posted(void* request, ucs_status_t status, void* record) {
    auto* ours = static_cast<PostRecord*>(record);
    ucp_request_free(request);
    ours->owner->over(ours, ours->owner->posts_, status);
}

Status UcxTransport::send(Endpoint& endpoint, std::span<const std::byte> header, const void* payload,
                          std::size_t bytes, Completion* completion) {
    auto& to = static_cast<UcxEndpoint&>(endpoint);
    return send(to, header, payload, bytes, nullptr, completion);
}

Status UcxTransport::send_from(Endpoint& endpoint, std::span<const std::byte> header,
                               const NetworkPlace& payload, std::size_t bytes, Completion* completion) {
    auto& to = static_cast<UcxEndpoint&>(endpoint);
    const Registration* const place = Registration::of(payload, bytes, context_.get());
    if (place == nullptr || to.local != nullptr) return Status::access;
    return send(to, header, reinterpret_cast<const void*>(payload.address), bytes, place, completion);
}

// Smaller payloads travel with their header, so they are read first. `connect` reaches this process itself
// without a network.
std::size_t UcxTransport::least_from_network(const Endpoint& endpoint) const {
    const bool reached =
        config_.imports != MemorySource::none && static_cast<const UcxEndpoint&>(endpoint).local == nullptr;
    return reached ? least_network_bytes : SIZE_MAX;
}

Status UcxTransport::send(UcxEndpoint& to, std::span<const std::byte> header, const void* payload,
                          std::size_t bytes, const Registration* place, Completion* completion) {
    if (header.size() > max_wire_header) return Status::invalid;
    if (to.local) return local_->send(*to.local, header, payload, bytes, completion);
    if (!to.ep || to.error != UCS_OK) return Status::peer_lost;

    SendRecord* record = sends_.take();
    std::memcpy(record->header.data(), header.data(), header.size());
    ucp_request_param_t param =
        place != nullptr ? network_params(*place, record) : ucx::host_memory_params(record);
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    const bool pushed = place == nullptr && (bytes < config_.rendezvous_bytes || bytes <= to.push_bytes);
    param.flags = bytes > 0 && !pushed ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER;
    param.cb.send = &UcxTransport::on_sent;
    begin(record, completion);
    void* request =
        ucp_am_send_nbx(to.ep, am_id, record->header.data(), header.size(), payload, bytes, &param);
    if (bytes > max_post && to.push_bytes > 0) pace_.sent(event_fd_);  // over a byte stream
    return begun(record, sends_, request);
}

// The endpoint is asked each time, because it reports other transports while it is being wired up than later.
std::size_t UcxTransport::push_bytes(Endpoint& endpoint) {
    auto& to = static_cast<UcxEndpoint&>(endpoint);
    to.push_bytes = to.ep && to.error == UCS_OK && goes_over_tcp(to.ep) ? config_.stream_push_bytes : 0;
    return to.push_bytes;
}

bool UcxTransport::goes_over_tcp(ucp_ep_h ep) const {
#ifdef OFFPATH_UCX_ENDPOINT_TRANSPORTS
    std::array<ucp_transport_entry_t, 8> entries{};
    ucp_ep_attr_t attributes{};
    attributes.field_mask = UCP_EP_ATTR_FIELD_TRANSPORTS;
    attributes.transports.entries = entries.data();
    attributes.transports.num_entries = entries.size();
    attributes.transports.entry_size = sizeof(ucp_transport_entry_t);
    if (ucp_ep_query(ep, &attributes) != UCS_OK || attributes.transports.num_entries == 0) return false;
    const std::span used(entries.data(),
                         std::min<std::size_t>(attributes.transports.num_entries, entries.size()));
    return std::ranges::all_of(
        used, [](const auto& entry) { return std::string_view(entry.transport_name) == "tcp"; });
#else
    (void)ep;
    return only_tcp_;
#endif
}

void UcxTransport::on_sent(void* request, ucs_status_t status, void* record) {
    auto* ours = static_cast<SendRecord*>(record);
    ucp_request_free(request);
    ours->owner->over(ours, ours->owner->sends_, status);
}

Status UcxTransport::fetch(void* rendezvous, void* destination, std::size_t bytes, Completion* completion) {
    return receive(rendezvous, destination, bytes, nullptr, completion);
}

Status UcxTransport::fetch_into(void* rendezvous, const NetworkPlace& destination, std::size_t bytes,
                                Completion* completion) {
    const Registration* const place = Registration::of(destination, bytes, context_.get());
    if (place == nullptr || static_cast<Payload*>(rendezvous)->local) {
        discard(rendezvous);
        return Status::access;
    }
    return receive(rendezvous, reinterpret_cast<void*>(destination.address), bytes, place, completion);
}

Status UcxTransport::receive(void* rendezvous, void* destination, std::size_t bytes,
                             const Registration* place, Completion* completion) {
    auto* payload = static_cast<Payload*>(rendezvous);
    if (bytes != payload->bytes) return Status::invalid;
    void* descriptor = payload->descriptor;
    if (payload == arriving_) arriving_ = nullptr;
    waiting_.remove(payload);
    payloads_.give_back(payload);
    if (payload->local) return local_->fetch(descriptor, destination, bytes, completion);

    WorkerOperation* operation = fetches_.take();
    ucp_request_param_t param =
        place != nullptr ? network_params(*place, operation) : ucx::host_memory_params(operation);
    param.cb.recv_am = &UcxTransport::on_fetched;
    begin(operation, completion);
    void* request = ucp_am_recv_data_nbx(worker_, descriptor, destination, bytes, &param);
    return begun(operation, fetches_, request);
}

void UcxTransport::on_fetched(void* request, ucs_status_t status, std::size_t, void* operation) {
    auto* ours = static_cast<WorkerOperation*>(operation);
    ucp_request_free(request);
    ours->owner->over(ours, ours->owner->fetches_, status);
}

void UcxTransport::discard(void* rendezvous) {
    auto* payload = static_cast<Payload*>(rendezvous);
    waiting_.remove(payload);
    payloads_.give_back(payload);
    if (payload == arriving_)
        arriving_ = nullptr, unwanted_ = true;
    else if (!payload->local)
        ucp_am_data_release(worker_, payload->descriptor);
    else if (local_)
        local_->discard(payload->descriptor);
}

ucs_status_t UcxTransport::on_am(void* self, const void* header, std::size_t header_bytes, void* data,
                                 std::size_t bytes, const ucp_am_recv_param_t* param) {
    auto& ours = *static_cast<UcxTransport*>(self);
    if (!ours.handler_) return UCS_OK;
    Incoming message;
    message.header = {static_cast<const std::byte*>(header), header_bytes};
    message.bytes = bytes;
    if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
        static constexpr std::byte nothing{};
        message.data = data ? static_cast<const std::byte*>(data) : &nothing;
        ours.handler_->on_message(message);
        return UCS_OK;
    }
    Payload* payload = ours.payloads_.take();
    payload->descriptor = data;
    payload->bytes = bytes;
    payload->local = false;
    ours.waiting_.add(payload);
    message.rendezvous = payload;
    ours.arriving_ = payload;
    ours.unwanted_ = false;
    ours.handler_->on_message(message);
    ours.arriving_ = nullptr;
    return ours.unwanted_ ? UCS_OK : UCS_INPROGRESS;
}

void UcxTransport::on_message(const Incoming& message) {
    if (!handler_) return;
    if (!message.rendezvous) return handler_->on_message(message);
    Payload* payload = payloads_.take();
    payload->descriptor = message.rendezvous;
    payload->bytes = message.bytes;
    payload->local = true;
    waiting_.add(payload);
    Incoming ours = message;
    ours.rendezvous = payload;
    handler_->on_message(ours);
}

// Completions are called only inside progress(), so callers of send() and disconnect() need not expect them.
void UcxTransport::finish(Completion* completion, Status status) {
    if (in_progress_ && !calling_ && !closing_call_)
        (*completion)(status);
    else
        deferred_.push_back({completion, status});
}

}  // namespace offpath::transport::ucx
