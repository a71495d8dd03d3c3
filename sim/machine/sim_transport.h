// SimTransport: the network between workers, in virtual time. It implements the interface that UCX and TCP
// implement for the engine.
//
// Small payloads travel with their header. Larger ones are announced, and the receiver fetches them. With
// Protocol::rdma the fetch reads the sender's memory without the sender's core. With Protocol::stream
// payloads travel with their header up to the size that the product pushes over TCP; beyond that the sender's
// core is asked. In both cases the sender's core copies the bytes into its socket, and the receiver's core
// copies them out.
//
// Payloads of chunks need not exist: engines do not look into them. With Cluster::Data::none only their sizes
// travel. All other payloads are copied as they are.
//
// A library on Protocol::stream is an MPI library over TCP, which sends up to library_eager_bytes without
// asking. The engine asks from 4 KiB on. Up to that limit its questions and answers therefore take no time
// and no core, and ranks answer them outside of calls too. Above it a library's sender asks, and its receiver
// answers. In collectives it is the engine's receiver that says first that it is there. That, too, takes no
// time and no core then; the sender announces its payload, and the receiver fetches it.
//
// The socket of a library takes payloads up to a limit, and those are done for the library, wherever their
// bytes are. Within a node such libraries use shared memory. What that takes is the time of the link within
// the node, and a copy by the receiver.
//
// Ownership: owns its endpoints. Threads: one.
#pragma once

#include "sim/clock/event_queue.h"
#include "transport/transport.h"

#include <deque>
#include <memory>
#include <unordered_set>
#include <vector>

namespace offpath::sim {

class Cluster;
class SimTransport;
class Worker;

// A payload in its sender's memory.
struct Announced {
    SimTransport* from = nullptr;
    const std::byte* payload = nullptr;  // null: only its size travels
    std::size_t bytes = 0;
    Completion* completion = nullptr;  // the sender's
    SimTransport* to = nullptr;
    std::byte* destination = nullptr;
    Completion* fetched = nullptr;  // the receiver's
};

// What reaches a transport.
struct Arrival {
    enum class Kind : std::uint8_t {
        message,
        asked,    // the receiver wants the payload
        fetched,  // the payload has come
        ended,    // the payload is no longer needed
        drained   // a payload that was pushed has left the socket
    } kind = Kind::message;
    SimTransport* to = nullptr;
    std::vector<std::byte> bytes;  // the header, and a payload that travels as it is
    std::size_t header_bytes = 0, payload_bytes = 0;
    bool with_payload = false;
    Announced* announced = nullptr;
    Completion* completion = nullptr;
    SimTransport* from = nullptr;           // of a payload that was pushed: who waits until it has left
    transport::Endpoint* socket = nullptr;  // of a library's: where it counts
    bool free = false;                      // it stands for nothing that the library would send
    const SimTransport* sender = nullptr;
};

// Records of all transports of a cluster, recycled.
template <typename Record>
class Pool {
  public:
    Record* take() {
        if (unused_.empty()) return &all_.emplace_back();
        Record* record = unused_.back();
        unused_.pop_back();
        return record;
    }
    void give_back(Record* record) { unused_.push_back(record); }

  private:
    std::deque<Record> all_;
    std::vector<Record*> unused_;
};

class SimTransport final : public transport::Transport {
  public:
    SimTransport(Cluster& cluster, Worker& worker) : cluster_(cluster), worker_(worker) {}
    ~SimTransport() override;

    void set_handler(transport::Handler* handler) override { handler_ = handler; }
    std::vector<std::byte> address() const override;
    Status connect(std::span<const std::byte> address, transport::Endpoint** endpoint) override;
    void disconnect(transport::Endpoint*) override {}
    Status post(transport::Endpoint& endpoint, std::span<const std::byte> header,
                std::span<const std::byte> payload) override;
    Status send(transport::Endpoint& endpoint, std::span<const std::byte> header, const void* payload,
                std::size_t bytes, Completion* completion) override;
    std::size_t push_bytes(transport::Endpoint& endpoint) override;
    Status fetch(void* rendezvous, void* destination, std::size_t bytes, Completion* completion) override;
    // With memory xgvmi the network card moves the ranks' memory by itself.
    std::size_t least_from_network(const transport::Endpoint& endpoint) const override;
    bool fetches_into_network() const override;
    Status send_from(transport::Endpoint& endpoint, std::span<const std::byte> header,
                     const NetworkPlace& payload, std::size_t bytes, Completion* completion) override {
        return send(endpoint, header, reinterpret_cast<const void*>(payload.address), bytes, completion);
    }
    Status fetch_into(void* rendezvous, const NetworkPlace& destination, std::size_t bytes,
                      Completion* completion) override {
        return fetch(rendezvous, reinterpret_cast<void*>(destination.address), bytes, completion);
    }
    void discard(void* rendezvous) override;
    unsigned progress() override;
    int event_fd() const override { return -1; }
    Status arm() override { return Status::retry; }
    std::string describe() const override { return "simulated"; }

    bool has_events() const { return !inbox_.empty(); }
    bool has_free_events() const { return !free_inbox_.empty(); }
    std::size_t connections() const { return endpoints_.size(); }

  private:
    struct Peer final : transport::Endpoint {
        SimTransport* to = nullptr;
        Time usable_at = 0;
        // Of a library: bytes that its socket has taken and that have not arrived, and completions of
        // payloads that it has not taken yet.
        std::uint64_t in_socket = 0;
        std::deque<Completion*> waiting;
    };
    static void arrived(void* arrival, std::uint64_t);
    Arrival* new_arrival(Arrival::Kind kind);
    Arrival* message_with(std::span<const std::byte> header);
    void dispatch(Arrival& arrival);
    void on_message(const Arrival& arrival);
    void end_push(Completion* completion);
    void send_payload(Announced& announced, Time departs);
    void on_payload(Announced& announced, const Arrival& arrival);
    // What a message of so many bytes takes of the core of its sender, or of its receiver.
    double sending_s(const SimTransport& to, std::uint64_t bytes) const;
    double receiving_s(const SimTransport& from, std::uint64_t bytes) const;
    bool is_library_over_sockets() const;
    // sim_sockets.cpp. Whether a library asks before it sends this.
    bool asks_first(std::span<const std::byte> header);
    // A library's sender is done when its socket has the payload. Devices wait for their receivers' word.
    bool is_confirmation(std::span<const std::byte> header) const;
    void want_no_confirmation(std::vector<std::byte>& header) const;
    // Remembers receivers in collectives, and of what is got from a window, that a library's sender has to
    // ask.
    void note_receiver(const Arrival& arrival);
    bool shares_memory_with(const SimTransport& other) const;
    void leave(Arrival* arrival, SimTransport& to, std::uint64_t bytes, Time departs);

    Cluster& cluster_;
    Worker& worker_;
    transport::Handler* handler_ = nullptr;
    std::vector<std::unique_ptr<Peer>> endpoints_;
    std::deque<Arrival*> inbox_, free_inbox_;
    std::unordered_set<std::uint64_t> to_ask_;  // tokens of receivers
};

}  // namespace offpath::sim
