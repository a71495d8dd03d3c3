// Network: carries messages between nodes, over the port of the sender, the topology's links and the port of
// the receiver. A message is cut through: a link passes its first bytes on before its last ones have come.
//
// With `segment_bytes`, the flows that leave a node take turns at its port, one segment each. The kernel does
// so with sockets: of each it lets some bytes into the queue of the interface ("TCP small queues"), so a
// short message waits for a segment of each other flow, and not for all that they have. How many bytes these
// are depends on the socket's rate: a message may have longer turns than others.
//
// Ownership: owns its links and the messages on their way. Threads: one.
#pragma once

#include "sim/network/topology.h"
#include "sim/servers/link.h"

#include <deque>
#include <map>
#include <memory>
#include <vector>

namespace offpath::sim {

struct NetworkFigures {
    double port_Bps = 0;    // of each direction of a node's port
    double port_burst = 0;  // bytes that pass a port at once after a pause
    double link_Bps = 0;    // of the links of the topology
    Time port_latency = 0;  // from one node to another, without the links of the topology
    Time link_latency = 0;  // of each link of the topology
    double inside_Bps = 0;  // between two proxies or ranks of a node
    Time inside_latency = 0;
    std::uint32_t frame_bytes = 0;  // what a message has on the wire beside its bytes
    Sharing sharing = Sharing::fifo;
    std::uint64_t segment_bytes = 0;  // 0: whole messages leave one after the other
};

struct Flow {
    std::uint64_t id = 0;
    std::uint64_t turn_bytes = 0;  // instead of segment_bytes; 0: those
};

class Network {
  public:
    Network(EventQueue& queue, const NetworkFigures& figures, TopologyShape shape, std::uint32_t nodes);
    // Sends a message at time `departs`, which is not before now. `action` is called when its last byte has
    // come. Messages of one flow stay in order.
    void send(std::uint32_t from, std::uint32_t to, std::uint64_t bytes, Time departs,
              EventQueue::Action action, void* object, std::uint64_t argument, Flow flow = {});
    std::uint64_t bytes_between_nodes() const { return bytes_; }
    std::uint64_t messages() const { return messages_; }
    // How busy the busiest port was.
    Time busiest_port() const;

  private:
    struct Message {
        Network* network = nullptr;
        std::uint32_t from = 0, to = 0;
        std::uint64_t bytes = 0;
        std::uint32_t hop = 0, open = 0;
        Time tail = 0;
        std::vector<LinkId> route;
        EventQueue::Action action = nullptr;
        void* object = nullptr;
        std::uint64_t argument = 0;
        Flow flow;
        std::uint64_t left = 0;  // of its bytes, at the sender's port
    };
    // What waits at a sender's port.
    struct Port {
        std::map<std::uint64_t, std::deque<Message*>> flows;
        std::deque<std::uint64_t> turns;  // of the flows that have messages
        std::uint64_t turn_used = 0;      // bytes of the first flow's turn that have left
        bool busy = false;
    };
    Message* take();
    void queue_at_port(Message* message);
    static void next_segment(void* network, std::uint64_t port);
    static void depart(void* message, std::uint64_t);
    static void next_hop(void* message, std::uint64_t);
    static void shared_hop_over(void* message, std::uint64_t);
    static void arrive(void* message, std::uint64_t);
    Link& link(LinkId id) { return links_[id]; }

    EventQueue& queue_;
    NetworkFigures figures_;
    Topology topology_;
    std::vector<Link> links_;  // of the topology; then of each node its port out, its port in, and inside
    std::vector<Port> ports_;  // only with segments
    std::vector<std::unique_ptr<Message>> all_;
    std::vector<Message*> unused_;
    std::uint64_t bytes_ = 0, messages_ = 0;
};

}  // namespace offpath::sim
