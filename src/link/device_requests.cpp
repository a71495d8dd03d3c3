// The requests of DeviceStaging: the pieces of transfers that are in flight, and the answers to them.
#include "link/device_staging.h"

#include "memory/copy.h"

#include <algorithm>
#include <utility>

namespace offpath::link {
namespace {

using memory::StagedTransfer;
using memory::StagingDirection;

constexpr std::uint32_t place_bits = 16;
constexpr std::uint32_t place_mask = (1u << place_bits) - 1;
static_assert(3 * DeviceStaging::window_requests <= place_mask);

constexpr std::uint32_t parts_of(std::size_t bytes) {
    return static_cast<std::uint32_t>((bytes + part_bytes - 1) / part_bytes);
}

}  // namespace

StagedTransfer* DeviceStaging::next(StagingDirection direction) const {
    StagedTransfer* const transfer = queue_.next(direction);
    const InFlight& window = in_flight_[static_cast<std::size_t>(direction) - 1];
    if (transfer == nullptr || window.requests >= window_requests) return nullptr;
    const std::size_t piece = std::min<std::size_t>(transfer->left(), part_bytes);
    return window.bytes + piece <= window_bytes ? transfer : nullptr;
}

DeviceStaging::StagedRequest& DeviceStaging::take_request(StagedTransfer& transfer, std::size_t bytes) {
    if (free_requests_.empty()) {
        StagedRequest& made = requests_.emplace_back();
        made.owner = this;
        made.function = &DeviceStaging::on_sent;
        made.id = static_cast<std::uint32_t>(requests_.size() - 1);
        free_requests_.push_back(&made);
    }
    StagedRequest& request = *free_requests_.back();
    free_requests_.pop_back();
    request.transfer = &transfer;
    request.offset = transfer.issued;
    request.bytes = static_cast<std::uint32_t>(bytes);
    request.held = 0;
    InFlight& window = in_flight(transfer.direction);
    window.bytes += bytes;
    ++window.requests;
    queue_.issue(transfer, bytes);
    return request;
}

unsigned DeviceStaging::issue_fetches() {
    unsigned issued = 0;
    while (next(StagingDirection::to_device) != nullptr) {
        items_.clear();
        std::uint32_t count = 0;
        while (count < max_items<FetchItem>) {
            StagedTransfer* const transfer = next(StagingDirection::to_device);
            if (transfer == nullptr) break;
            const std::size_t rest = transfer->left();
            // Fetch whole parts, as many as the window has room for.
            const std::size_t room =
                (window_bytes - in_flight(StagingDirection::to_device).bytes) / part_bytes * part_bytes;
            const std::size_t bytes =
                rest <= part_bytes ? rest : std::min({rest, room, std::size_t{max_fetch_bytes}});
            StagedRequest& request = take_request(*transfer, bytes);
            request.awaited = (1u << parts_of(bytes)) - 1;
            const FetchItem item{transfer->host_address + request.offset, request.id, request.bytes};
            items_.resize(items_.size() + wire_bytes<FetchItem>);
            encode_item(item, std::span(items_).last(wire_bytes<FetchItem>));
            ++count;
        }
        post_items(Kind::fetch, count);
        issued += count;
    }
    return issued;
}

unsigned DeviceStaging::issue_copies() {
    unsigned issued = 0;
    while (next(StagingDirection::within_host) != nullptr) {
        items_.clear();
        std::uint32_t count = 0;
        while (count < max_items<CopyItem>) {
            StagedTransfer* const transfer = next(StagingDirection::within_host);
            if (transfer == nullptr) break;
            StagedRequest& request =
                take_request(*transfer, std::min<std::size_t>(transfer->left(), part_bytes));
            request.awaited = 1;
            const CopyItem item{transfer->host_address + request.offset, transfer->copy_to + request.offset,
                                request.id, request.bytes};
            items_.resize(items_.size() + wire_bytes<CopyItem>);
            encode_item(item, std::span(items_).last(wire_bytes<CopyItem>));
            ++count;
        }
        post_items(Kind::copy, count);
        issued += count;
    }
    return issued;
}

void DeviceStaging::post_items(Kind kind, std::uint32_t count) {
    Header header;
    header.kind = kind;
    header.token = ends_.token;
    header.count = count;
    header.bytes = static_cast<std::uint32_t>(items_.size());
    if (const Status status = ends_.out.post(*ends_.control, header, items_); status != Status::ok)
        transport_failed(status);
}

unsigned DeviceStaging::issue_stores() {
    unsigned issued = 0;
    while (StagedTransfer* const transfer = next(StagingDirection::to_host)) {
        StagedRequest& request = take_request(*transfer, std::min<std::size_t>(transfer->left(), part_bytes));
        request.awaited = 1;
        Header header;
        header.kind = Kind::store;
        header.token = ends_.token;
        header.position = transfer->host_address + request.offset;
        header.id = request.id;
        header.bytes = request.bytes;
        const std::byte* const from = transfer->local + request.offset;
        Status status;
        if (request.bytes <= batch_bytes) {
            status = ends_.out.post(*ends_.control, header, {from, request.bytes});
        } else {
            status = ends_.out.send(*ends_.bulk, header, from, request.bytes, &request);
            if (status == Status::in_progress) {
                ++request.held;
                status = Status::ok;
            }
        }
        if (status != Status::ok) transport_failed(status);
        ++issued;
    }
    return issued;
}

DeviceStaging::StagedRequest* DeviceStaging::find(std::uint32_t id) {
    const std::uint32_t place = id & place_mask;
    if (place >= requests_.size()) return nullptr;
    StagedRequest& request = requests_[place];
    return request.transfer != nullptr && request.id == id ? &request : nullptr;
}

void DeviceStaging::on_sent(Completion* self, Status status) {
    auto& request = *static_cast<StagedRequest*>(self);
    DeviceStaging& owner = *request.owner;
    --request.held;
    if (status != Status::ok) owner.transport_failed(status);
    owner.finish_if_over(request);
}

bool DeviceStaging::on_data(const Header& header, const transport::Incoming& message) {
    StagedRequest* const request = find(header.id);
    const auto part = static_cast<std::uint32_t>(header.position / part_bytes);
    if (request == nullptr || request->transfer->direction != StagingDirection::to_device ||
        header.position % part_bytes != 0 || (request->awaited >> part & 1) == 0)
        return false;
    StagedTransfer& transfer = *request->transfer;
    if (header.status != Status::ok) {
        queue_.fail(transfer, header.status);
        request->awaited &= ~(1u << part);
        finish_if_over(*request);
        return true;
    }
    if (header.bytes != std::min<std::uint64_t>(part_bytes, request->bytes - header.position)) return false;
    request->awaited &= ~(1u << part);
    bytes_to_device_ += header.bytes;
    std::byte* const to = transfer.local + request->offset + header.position;
    if (message.rendezvous == nullptr) {
        memory::copy_bytes(to, message.data, header.bytes);
        finish_if_over(*request);
        return true;
    }
    PartFetch* const fetching = fetches_.take();
    fetching->function = &DeviceStaging::on_fetched;
    fetching->owner = this;
    fetching->request = request;
    ++request->held;
    ++fetching_;
    const Status status = ends_.transport.fetch(message.rendezvous, to, header.bytes, fetching);
    if (status != Status::in_progress) on_fetched(fetching, status);
    return true;
}

void DeviceStaging::on_fetched(Completion* self, Status status) {
    auto* const fetching = static_cast<PartFetch*>(self);
    DeviceStaging& owner = *fetching->owner;
    StagedRequest& request = *fetching->request;
    owner.fetches_.give_back(fetching);
    --owner.fetching_;
    --request.held;
    if (status != Status::ok) {
        // If the client's memory is not there, only its own transfer fails.
        if (status != Status::access) owner.transport_failed(status);
        if (request.transfer != nullptr) owner.queue_.fail(*request.transfer, status);
    }
    owner.finish_if_over(request);
}

bool DeviceStaging::on_stored(std::span<const std::byte> items, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto item = decode_item<StoredItem>(items, i);
        StagedRequest* const request = find(item.id);
        if (request == nullptr || request->transfer->direction == StagingDirection::to_device ||
            request->awaited == 0)
            return false;
        request->awaited = 0;
        if (item.status != Status::ok)
            queue_.fail(*request->transfer, item.status);
        else if (request->transfer->direction == StagingDirection::to_host)
            bytes_to_host_ += request->bytes;
        finish_if_over(*request);
    }
    return true;
}

void DeviceStaging::finish_if_over(StagedRequest& request) {
    if (request.transfer == nullptr || request.awaited != 0 || request.held != 0) return;
    StagedTransfer& transfer = *std::exchange(request.transfer, nullptr);
    InFlight& window = in_flight(transfer.direction);
    window.bytes -= request.bytes;
    --window.requests;
    request.id += 1u << place_bits;
    free_requests_.push_back(&request);
    queue_.piece_over(transfer);
}

}  // namespace offpath::link
