#include "sim/machine/sim_transport.h"

#include "engine/messages/headers.h"
#include "engine/mover/wire.h"
#include "engine/schedules/headers.h"
#include "sim/machine/cluster.h"
#include "sim/machine/worker.h"

#include <algorithm>
#include <cstring>

namespace offpath::sim {
namespace {

// send() with up to this much brings its payload along, as UCX does before it changes to a rendezvous.
constexpr std::size_t eager_bytes = 8 << 10;
constexpr std::size_t least_direct_bytes = std::max(least_network_bytes, eager_bytes + 1);
// The product's limit over TCP (UcxConfig::stream_push_bytes).
constexpr std::size_t stream_push_bytes = 240 << 10;
// What a socket of an MPI library had in the queue of the interface at once, in packets captured in the lab.
// The library writes a message until the socket takes no more; proxies wait for answers between their pieces.
constexpr std::uint64_t library_turn_bytes = 1 << 20;
// A message of the transport's own: an announcement, a request to send, or the news that a fetch is done.
constexpr std::uint64_t control_bytes = 64;
constexpr unsigned events_per_progress = 64;

// Whether a library would not say this: it just sends such a payload, or does not tell senders that its
// receivers are there.
bool is_only_the_engines(std::span<const std::byte> header) {
    engine::Ready ready;
    engine::BasicRequest request;
    engine::Grant grant;
    switch (engine::kind_of(header)) {
        case engine::Kind::ready:
            return engine::read(header, ready);
        case engine::Kind::request:
            return engine::read(header, request) && request.token != 0 &&
                   request.bytes <= library_eager_bytes;
        case engine::Kind::grant:
            return engine::read(header, grant) && grant.bytes <= library_eager_bytes;
        default:
            return false;
    }
}

bool is_chunk(std::span<const std::byte> header) {
    return header.size() > sizeof(engine::Stamp) &&
           engine::kind_of(header.subspan(sizeof(engine::Stamp))) == engine::Kind::chunk;
}

}  // namespace

SimTransport::~SimTransport() = default;

std::vector<std::byte> SimTransport::address() const {
    const std::uint32_t number = worker_.number();
    std::vector<std::byte> bytes(sizeof number);
    std::memcpy(bytes.data(), &number, sizeof number);
    return bytes;
}

Status SimTransport::connect(std::span<const std::byte> address, transport::Endpoint** endpoint) {
    std::uint32_t number = 0;
    if (address.size() != sizeof number) return Status::protocol;
    std::memcpy(&number, address.data(), sizeof number);
    endpoints_.push_back(std::make_unique<Peer>());
    endpoints_.back()->to = &cluster_.worker(number).transport();
    endpoints_.back()->usable_at = worker_.present() + from_seconds(cluster_.platform().connect_s);
    *endpoint = endpoints_.back().get();
    return Status::ok;
}

Arrival* SimTransport::new_arrival(Arrival::Kind kind) {
    Arrival* arrival = cluster_.arrivals().take();
    arrival->kind = kind;
    arrival->bytes.clear();
    arrival->header_bytes = arrival->payload_bytes = 0;
    arrival->with_payload = false;
    arrival->announced = nullptr;
    arrival->completion = nullptr;
    arrival->from = nullptr;
    arrival->socket = nullptr;
    arrival->free = false;
    return arrival;
}

Arrival* SimTransport::message_with(std::span<const std::byte> header) {
    Arrival* arrival = new_arrival(Arrival::Kind::message);
    arrival->bytes.assign(header.begin(), header.end());
    arrival->header_bytes = header.size();
    return arrival;
}

void SimTransport::leave(Arrival* arrival, SimTransport& to, std::uint64_t bytes, Time departs) {
    arrival->to = &to;
    arrival->sender = this;
    Flow flow{(std::uint64_t{worker_.number()} << 32) | to.worker_.number()};
    if (worker_.kind() == Worker::Kind::library) flow.turn_bytes = library_turn_bytes;
    cluster_.network().send(worker_.node(), to.worker_.node(), bytes, departs, &SimTransport::arrived,
                            arrival, 0, flow);
}

void SimTransport::arrived(void* object, std::uint64_t) {
    auto* arrival = static_cast<Arrival*>(object);
    SimTransport& self = *arrival->to;
    if (arrival->kind == Arrival::Kind::asked && self.cluster_.platform().protocol == Protocol::rdma) {
        // The network card answers.
        Announced& announced = *arrival->announced;
        self.cluster_.arrivals().give_back(arrival);
        return self.send_payload(announced, self.cluster_.queue().now());
    }
    if (arrival->socket != nullptr) {
        auto& peer = static_cast<Peer&>(*arrival->socket);
        peer.in_socket -= arrival->payload_bytes;
        if (!peer.waiting.empty()) {
            arrival->from->end_push(peer.waiting.front());
            peer.waiting.pop_front();
        }
    } else if (arrival->from != nullptr) {
        arrival->from->end_push(arrival->completion);
    }
    (arrival->free ? self.free_inbox_ : self.inbox_).push_back(arrival);
    self.worker_.wake();
}

std::size_t SimTransport::push_bytes(transport::Endpoint& endpoint) {
    const bool streams = cluster_.platform().protocol == Protocol::stream;
    return streams && static_cast<Peer&>(endpoint).to != this ? stream_push_bytes : 0;
}

Status SimTransport::post(transport::Endpoint& endpoint, std::span<const std::byte> header,
                          std::span<const std::byte> payload) {
    if (header.size() > max_header || payload.size() > max_post) return Status::invalid;
    auto& peer = static_cast<Peer&>(endpoint);
    const std::uint64_t bytes = header.size() + payload.size();
    if (is_confirmation(header)) return Status::ok;
    if (payload.empty() && is_library_over_sockets() && header.size() > sizeof(engine::Stamp) &&
        is_only_the_engines(header.subspan(sizeof(engine::Stamp)))) {
        Arrival* question = message_with(header);
        question->free = question->with_payload = true;
        want_no_confirmation(question->bytes);
        question->to = peer.to;
        question->sender = this;
        cluster_.queue().at(std::max(worker_.present(), peer.usable_at), &SimTransport::arrived, question);
        return Status::ok;
    }
    worker_.charge_seconds(sending_s(*peer.to, bytes));
    Arrival* arrival = message_with(header);
    arrival->bytes.insert(arrival->bytes.end(), payload.begin(), payload.end());
    arrival->payload_bytes = payload.size();
    arrival->with_payload = true;
    leave(arrival, *peer.to, bytes, std::max(worker_.present(), peer.usable_at));
    return Status::ok;
}

Status SimTransport::send(transport::Endpoint& endpoint, std::span<const std::byte> header,
                          const void* payload, std::size_t bytes, Completion* completion) {
    if (header.size() > max_header) return Status::invalid;
    auto& peer = static_cast<Peer&>(endpoint);
    const auto* data = static_cast<const std::byte*>(payload);
    Arrival* arrival = message_with(header);
    arrival->payload_bytes = bytes;
    if (bytes <= eager_bytes) {
        worker_.charge_seconds(sending_s(*peer.to, header.size() + bytes));
        arrival->bytes.insert(arrival->bytes.end(), data, data + bytes);
        arrival->with_payload = true;
        leave(arrival, *peer.to, header.size() + bytes, std::max(worker_.present(), peer.usable_at));
        return Status::ok;
    }
    if (bytes <= push_bytes(endpoint) && !asks_first(header)) {
        worker_.charge_seconds(sending_s(*peer.to, header.size() + bytes));
        if (!is_chunk(header) || cluster_.moves_data())
            arrival->bytes.insert(arrival->bytes.end(), data, data + bytes);
        arrival->with_payload = true;
        arrival->from = this;
        arrival->completion = completion;
        if (worker_.kind() == Worker::Kind::library) {
            arrival->socket = &peer;
            peer.in_socket += bytes;
            if (peer.in_socket <= library_turn_bytes)
                end_push(completion);
            else
                peer.waiting.push_back(completion);
        }
        leave(arrival, *peer.to, header.size() + bytes, std::max(worker_.present(), peer.usable_at));
        return Status::in_progress;
    }
    worker_.charge_seconds(sending_s(*peer.to, 0));
    Announced* announced = cluster_.announced().take();
    *announced = Announced{};
    announced->from = this;
    announced->payload = is_chunk(header) && !cluster_.moves_data() ? nullptr : data;
    announced->bytes = bytes;
    announced->completion = completion;
    arrival->announced = announced;
    leave(arrival, *peer.to, header.size() + control_bytes, std::max(worker_.present(), peer.usable_at));
    return Status::in_progress;
}

Status SimTransport::fetch(void* rendezvous, void* destination, std::size_t bytes, Completion* completion) {
    auto* announced = static_cast<Announced*>(rendezvous);
    if (bytes != announced->bytes) return Status::invalid;
    announced->destination = static_cast<std::byte*>(destination);
    announced->to = this;
    announced->fetched = completion;
    worker_.charge_seconds(worker_.work().fetch_s);
    Arrival* request = new_arrival(Arrival::Kind::asked);
    request->announced = announced;
    leave(request, *announced->from, control_bytes, worker_.present());
    return Status::in_progress;
}

bool SimTransport::fetches_into_network() const {
    return cluster_.platform().memory == HostMemoryKind::xgvmi;
}

std::size_t SimTransport::least_from_network(const transport::Endpoint& endpoint) const {
    return fetches_into_network() && static_cast<const Peer&>(endpoint).to != this ? least_direct_bytes
                                                                                   : SIZE_MAX;
}

void SimTransport::discard(void* rendezvous) {
    auto* announced = static_cast<Announced*>(rendezvous);
    Arrival* end = new_arrival(Arrival::Kind::ended);
    end->completion = announced->completion;
    leave(end, *announced->from, control_bytes, worker_.present());
    cluster_.announced().give_back(announced);
}

unsigned SimTransport::progress() {
    unsigned events = 0;
    for (; !free_inbox_.empty(); ++events) {
        Arrival* arrival = free_inbox_.front();
        free_inbox_.pop_front();
        dispatch(*arrival);
        cluster_.arrivals().give_back(arrival);
    }
    if (!worker_.serves()) return events;
    for (; events < events_per_progress && !inbox_.empty(); ++events) {
        Arrival* arrival = inbox_.front();
        inbox_.pop_front();
        dispatch(*arrival);
        cluster_.arrivals().give_back(arrival);
    }
    return events;
}

void SimTransport::dispatch(Arrival& arrival) {
    switch (arrival.kind) {
        case Arrival::Kind::message:
            return on_message(arrival);
        case Arrival::Kind::asked: {
            Announced& announced = *arrival.announced;
            worker_.charge_seconds(receiving_s(*announced.to, 0) + sending_s(*announced.to, announced.bytes));
            Completion* const sent = announced.completion;
            send_payload(announced, worker_.present());
            return (*sent)(Status::ok);  // the socket has the bytes
        }
        case Arrival::Kind::fetched:
            return on_payload(*arrival.announced, arrival);
        case Arrival::Kind::drained:
            return (*arrival.completion)(Status::ok);
        case Arrival::Kind::ended:
            worker_.charge_seconds(receiving_s(*arrival.sender, 0));
            return (*arrival.completion)(Status::ok);
    }
}

void SimTransport::on_message(const Arrival& arrival) {
    const std::size_t came = arrival.header_bytes + (arrival.with_payload ? arrival.payload_bytes : 0);
    if (!arrival.free) worker_.charge_seconds(receiving_s(*arrival.sender, came));
    transport::Incoming message;
    message.header = {arrival.bytes.data(), arrival.header_bytes};
    message.bytes = arrival.payload_bytes;
    message.rendezvous = arrival.announced;
    if (arrival.with_payload) {
        const bool travelled = arrival.bytes.size() == arrival.header_bytes + arrival.payload_bytes;
        message.data =
            travelled ? arrival.bytes.data() + arrival.header_bytes : cluster_.empty(arrival.payload_bytes);
    }
    note_receiver(arrival);
    if (handler_ != nullptr) handler_->on_message(message);
}

void SimTransport::send_payload(Announced& announced, Time departs) {
    Arrival* data = new_arrival(Arrival::Kind::fetched);
    data->announced = &announced;
    if (announced.payload != nullptr)
        data->bytes.assign(announced.payload, announced.payload + announced.bytes);
    leave(data, *announced.to, announced.bytes, departs);
}

void SimTransport::on_payload(Announced& announced, const Arrival& arrival) {
    if (!arrival.bytes.empty()) std::memcpy(announced.destination, arrival.bytes.data(), announced.bytes);
    if (cluster_.platform().protocol == Protocol::stream) {
        worker_.charge_seconds(receiving_s(*announced.from, announced.bytes) -
                               receiving_s(*announced.from, 0));
    } else {
        Arrival* end = new_arrival(Arrival::Kind::ended);
        end->completion = announced.completion;
        leave(end, *announced.from, control_bytes, worker_.present());
    }
    Completion* const fetched = announced.fetched;
    cluster_.announced().give_back(&announced);
    (*fetched)(Status::ok);
}

}  // namespace offpath::sim
