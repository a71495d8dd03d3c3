// The internals of the UCX transport. ucx_transport.cpp (opening, endpoints, progress) and operations.cpp
// (post, send, fetch, incoming messages) share this class. Each record that UCX holds is the user data of its
// request.
#pragma once

#include "transport/free_list.h"
#include "transport/stream_pace.h"
#include "transport/ucx/handles.h"
#include "transport/ucx/process.h"
#include "transport/ucx/tuning.h"
#include "transport/ucx/ucx_transport.h"

#include <ucp/api/ucp.h>

#include <array>
#include <chrono>

namespace offpath::transport::ucx {

constexpr unsigned am_id = 1;

class UcxTransport;

struct UcxEndpoint final : Endpoint {
    UcxTransport* owner = nullptr;
    ucp_ep_h ep = nullptr;      // null when closed
    Endpoint* local = nullptr;  // the endpoint in the process's hub, for a peer in this process
    ucs_status_t error = UCS_OK;
    bool disconnected = false;  // delete it when UCX has released it
    bool closing = false;
    std::size_t push_bytes = 0;  // cached result of the last query
    int pidfd = -1;              // watches the peer's process; -1: not possible
};

// An operation that UCX holds, as the user data of its request. Outstanding operations are in a list, so that
// the destructor can end them.
struct WorkerOperation {
    UcxTransport* owner = nullptr;
    Completion* completion = nullptr;  // null: a post
    ucs_status_t status = UCS_INPROGRESS;
    WorkerOperation *previous = nullptr, *next = nullptr;
};

struct SendRecord : WorkerOperation {
    std::array<std::byte, Transport::max_wire_header> header;
};

struct PostRecord : WorkerOperation {
    std::array<std::byte, Transport::max_wire_header + Transport::max_post> bytes;
};

// A payload that stays at the sender until fetch() or discard().
struct Payload {
    void* descriptor = nullptr;  // UCX's, or the hub's
    std::size_t bytes = 0;
    bool local = false;
    Payload *previous = nullptr, *next = nullptr;
};

template <typename Node>
struct List {
    Node* first = nullptr;
    void add(Node* node) {
        node->previous = nullptr;
        node->next = first;
        if (first) first->previous = node;
        first = node;
    }
    void remove(Node* node) {
        (node->previous ? node->previous->next : first) = node->next;
        if (node->next) node->next->previous = node->previous;
    }
};

class UcxTransport final : public Transport, Handler {
  public:
    explicit UcxTransport(const UcxConfig& config) : config_(config) {}
    ~UcxTransport() override;

    Status open(std::string& problem);
    const UcxConfig& config() const { return config_; }
    const SharedContext& context() const { return context_; }

    void set_handler(Handler* handler) override { handler_ = handler; }
    std::vector<std::byte> address() const override { return address_; }
    Status connect(std::span<const std::byte> address, Endpoint** endpoint) override;
    void disconnect(Endpoint* endpoint) override;
    Status post(Endpoint& endpoint, std::span<const std::byte> header,
                std::span<const std::byte> payload) override;
    Status send(Endpoint& endpoint, std::span<const std::byte> header, const void* payload, std::size_t bytes,
                Completion* completion) override;
    std::size_t push_bytes(Endpoint& endpoint) override;
    bool only_streams() const override { return only_streams_; }
    Status fetch(void* rendezvous, void* destination, std::size_t bytes, Completion* completion) override;
    std::size_t least_from_network(const Endpoint& endpoint) const override;
    bool fetches_into_network() const override { return config_.imports != MemorySource::none; }
    Status send_from(Endpoint& endpoint, std::span<const std::byte> header, const NetworkPlace& payload,
                     std::size_t bytes, Completion* completion) override;
    Status fetch_into(void* rendezvous, const NetworkPlace& destination, std::size_t bytes,
                      Completion* completion) override;
    void discard(void* rendezvous) override;
    unsigned progress() override;
    int event_fd() const override { return event_fd_; }
    Status arm() override;
    std::string describe() const override { return description_; }

  private:
    struct Deferred {
        Completion* completion;
        Status status;
    };

    // Called by the process's hub.
    void on_message(const Incoming& message) override;
    void on_endpoint_lost(Endpoint& local) override;

    static ucs_status_t on_am(void* self, const void* header, std::size_t header_bytes, void* data,
                              std::size_t bytes, const ucp_am_recv_param_t* param);
    static void on_error(void* endpoint, ucp_ep_h ep, ucs_status_t status);
    static void on_posted(void* request, ucs_status_t status, void* record);
    static void on_sent(void* request, ucs_status_t status, void* record);
    static void on_fetched(void* request, ucs_status_t status, std::size_t bytes, void* operation);
    Status send(UcxEndpoint& to, std::span<const std::byte> header, const void* payload, std::size_t bytes,
                const Registration* place, Completion* completion);
    Status receive(void* rendezvous, void* destination, std::size_t bytes, const Registration* place,
                   Completion* completion);
    template <typename Record>
    void over(Record* record, FreeList<Record>& home, ucs_status_t status);
    template <typename Record>
    void begin(Record* record, Completion* completion);
    template <typename Record>
    Status begun(Record* record, FreeList<Record>& home, void* request);
    static void on_closed(void* request, ucs_status_t status, void* endpoint);

    Status connect_local(std::span<const std::byte> address, Endpoint** endpoint);
    bool goes_over_tcp(ucp_ep_h ep) const;
    void finish(Completion* completion, Status status);
    void close(UcxEndpoint& endpoint);
    void closed(UcxEndpoint& endpoint);
    unsigned run_deferred();
    void find_dead_processes();
    void flush(std::chrono::steady_clock::time_point deadline);

    UcxConfig config_;
    SharedContext context_;
    ucp_worker_h worker_ = nullptr;
    std::vector<std::byte> address_;
    std::string description_;
    int event_fd_ = -1;  // an epoll set: UCX, the hub, processes that die
    Handler* handler_ = nullptr;

    std::vector<std::unique_ptr<UcxEndpoint>> endpoints_;
    std::vector<UcxEndpoint*> failed_;  // on_endpoint_lost is due
    std::vector<Deferred> deferred_;    // completions to be called by the next progress()
    std::vector<Deferred> running_;
    FreeList<PostRecord> posts_;
    FreeList<SendRecord> sends_;
    FreeList<WorkerOperation> fetches_;
    FreeList<Payload> payloads_;
    List<WorkerOperation> out_;
    List<Payload> waiting_;
    std::unique_ptr<Transport> local_;
    const Process self_ = this_process();
    ProcessWatch watch_;
    StreamPace pace_;
    unsigned rounds_ = 0;
    bool only_streams_ = false;
    bool only_tcp_ = false;  // no other transport leads out of this process
    bool in_progress_ = false;
    // The payload that the handler is being told of. UCX must not be asked to release it before the handler
    // has returned, because some of its transports set only then how to do so.
    Payload* arriving_ = nullptr;
    bool unwanted_ = false;               // the handler has discarded it
    WorkerOperation* calling_ = nullptr;  // the operation of a UCX call that has not returned
    bool closing_call_ = false;           // UCX is closing an endpoint
    unsigned closing_ = 0;
};

}  // namespace offpath::transport::ucx
