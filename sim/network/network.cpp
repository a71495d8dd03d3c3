#include "sim/network/network.h"

#include <algorithm>

namespace offpath::sim {

Network::Network(EventQueue& queue, const NetworkFigures& figures, TopologyShape shape, std::uint32_t nodes)
    : queue_(queue), figures_(figures), topology_(std::move(shape), nodes) {
    links_.reserve(topology_.links() + std::size_t{3} * nodes);
    for (std::uint32_t i = 0; i < topology_.links(); ++i)
        links_.emplace_back(queue, figures.link_Bps, figures.link_latency, figures.sharing);
    for (std::uint32_t node = 0; node < nodes; ++node) {
        links_.emplace_back(queue, figures.port_Bps, figures.port_latency / 2, figures.sharing,
                            figures.port_burst);
        links_.emplace_back(queue, figures.port_Bps, figures.port_latency - figures.port_latency / 2,
                            figures.sharing, figures.port_burst);
        links_.emplace_back(queue, figures.inside_Bps, figures.inside_latency, figures.sharing);
    }
    if (figures.segment_bytes > 0 && figures.sharing == Sharing::fifo) ports_.resize(nodes);
}

Network::Message* Network::take() {
    if (unused_.empty()) {
        all_.push_back(std::make_unique<Message>());
        all_.back()->network = this;
        return all_.back().get();
    }
    Message* const message = unused_.back();
    unused_.pop_back();
    return message;
}

void Network::send(std::uint32_t from, std::uint32_t to, std::uint64_t bytes, Time departs,
                   EventQueue::Action action, void* object, std::uint64_t argument, Flow flow) {
    Message* const message = take();
    message->from = from;
    message->to = to;
    message->bytes = bytes + figures_.frame_bytes;
    message->hop = 0;
    message->tail = 0;
    message->action = action;
    message->object = object;
    message->argument = argument;
    message->flow = flow;
    message->route.clear();
    const LinkId ports = topology_.links();
    if (from == to) {
        message->route.push_back(ports + from * 3 + 2);
    } else {
        message->route.push_back(ports + from * 3);
        topology_.route(from, to, message->route);
        message->route.push_back(ports + to * 3 + 1);
        bytes_ += message->bytes;
        ++messages_;
    }
    if (departs <= queue_.now()) return depart(message, 0);
    queue_.at(departs, &Network::depart, message);
}

void Network::depart(void* object, std::uint64_t) {
    auto& message = *static_cast<Message*>(object);
    Network& network = *message.network;
    if (!network.ports_.empty() && message.from != message.to) return network.queue_at_port(&message);
    if (network.figures_.sharing == Sharing::fifo) return next_hop(object, 0);
    // All links at once: the slowest one decides, and the latencies add up.
    message.open = static_cast<std::uint32_t>(message.route.size());
    message.tail = network.queue_.now();
    for (std::size_t i = 0; i < message.route.size(); ++i) {
        Link& link = network.link(message.route[i]);
        message.tail += link.latency();
        link.share(message.bytes, &Network::shared_hop_over, &message, 0);
    }
}

void Network::queue_at_port(Message* message) {
    Port& port = ports_[message->from];
    message->left = message->bytes;
    std::deque<Message*>& flow = port.flows[message->flow.id];
    if (flow.empty()) port.turns.push_back(message->flow.id);
    flow.push_back(message);
    if (!port.busy) next_segment(this, message->from);
}

void Network::next_segment(void* self, std::uint64_t number) {
    auto& network = *static_cast<Network*>(self);
    Port& port = network.ports_[number];
    port.busy = !port.turns.empty();
    if (!port.busy) return;
    std::deque<Message*>& flow = port.flows[port.turns.front()];
    Message* piece = flow.front();
    const std::uint64_t bytes = std::min(piece->left, network.figures_.segment_bytes);
    const std::uint64_t turn = std::max(piece->flow.turn_bytes, network.figures_.segment_bytes);
    port.turn_used += bytes;
    const bool last = bytes == piece->left;
    if (last) {
        flow.pop_front();
    } else {
        Message* const whole = piece;
        whole->left -= bytes;
        piece = network.take();
        piece->route = whole->route;
        piece->action = nullptr;  // its message goes on
    }
    piece->bytes = bytes;
    piece->hop = 1;
    if (flow.empty() || port.turn_used + network.figures_.segment_bytes > turn) {
        if (!flow.empty()) port.turns.push_back(port.turns.front());
        port.turns.pop_front();
        port.turn_used = 0;
    }
    Link& link = network.link(piece->route.front());
    const Link::Passage passage = link.pass(bytes, 0);
    piece->tail = passage.tail;
    network.queue_.at(passage.head, &Network::next_hop, piece);
    network.queue_.at(passage.tail - link.latency(), &Network::next_segment, self, number);
}

void Network::shared_hop_over(void* object, std::uint64_t) {
    auto& message = *static_cast<Message*>(object);
    if (--message.open > 0) return;
    message.network->queue_.at(message.tail, &Network::arrive, object);
}

void Network::next_hop(void* object, std::uint64_t) {
    auto& message = *static_cast<Message*>(object);
    Network& network = *message.network;
    const Link::Passage passage = network.link(message.route[message.hop]).pass(message.bytes, message.tail);
    message.tail = passage.tail;
    if (++message.hop == message.route.size())
        return network.queue_.at(passage.tail, &Network::arrive, object);
    network.queue_.at(passage.head, &Network::next_hop, object);
}

void Network::arrive(void* object, std::uint64_t) {
    auto& message = *static_cast<Message*>(object);
    const EventQueue::Action action = message.action;
    void* const target = message.object;
    const std::uint64_t argument = message.argument;
    message.network->unused_.push_back(&message);
    if (action == nullptr) return;
    action(target, argument);
}

Time Network::busiest_port() const {
    Time most = 0;
    for (std::size_t i = topology_.links(); i < links_.size(); ++i)
        if ((i - topology_.links()) % 3 != 2) most = std::max(most, links_[i].busy());
    return most;
}

}  // namespace offpath::sim
