// DirectPaths: this process's connections to the proxies of other ranks. Small window operations use them to
// bypass this process's own proxy (rma/direct.h). A connection is opened when it is first wanted. Until it is
// open, and where it is not possible, operations go through the own proxy. A proxy answers in order, so
// outstanding requests form a queue.
//
// Ownership: the context owns it; it owns the transport, the secrets and the outstanding requests. Threads:
// everything under the context's lock.
#pragma once

#include "base/status.h"
#include "control/messages.h"
#include "rma/direct.h"
#include "transport/transport.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

struct offpath_window;

namespace offpath::client {

class DirectPaths final : transport::Handler {
  public:
    // The proxy that serves a rank of the job, and how to reach it.
    struct Home {
        std::uint64_t proxy = 0;
        std::vector<std::byte> address;  // empty: no direct path leads there
        control::Secret secret{};
    };
    // The result of a request that a caller waits for.
    struct Outcome {
        bool over = false;
        Status status = Status::ok;
    };
    // The receiver of an answer: a waiting caller, or the window, which reports errors at its next flush.
    struct Asker {
        Outcome* outcome = nullptr;
        std::byte* result = nullptr;
        std::uint64_t result_bytes = 0;
        offpath_window* window = nullptr;
    };
    struct Path {
        std::uint64_t proxy = 0;
        std::uint32_t index = 0;
        enum class State : std::uint8_t { calling, proving, open, closed } state = State::calling;
        transport::Endpoint* endpoint = nullptr;
        std::uint32_t target = 0;  // the rank whose secret it is opened with
        control::Nonce challenge{}, nonce{};
        std::uint64_t token = 0, numbers = 0;
        struct Pending {
            std::uint64_t number = 0, order = 0;  // on this path, and among the requests of all paths
            Asker asker;
        };
        std::deque<Pending> pending;
        std::uint64_t awaited_bytes = 0;  // of their results
        std::uint32_t in_a_row = 0;       // requests since a caller last waited for an answer
        std::vector<std::byte> bundle;    // requests that wait to be sent together
        std::uint32_t bundled = 0;
        static constexpr std::uint64_t none = UINT64_MAX;
        std::uint64_t looked_number = none;  // the oldest request at the last look()
        std::uint64_t silent_ns = 0;         // how long that request has waited since
        bool owes_before(std::uint64_t end) const { return !pending.empty() && pending.front().order < end; }
    };

    DirectPaths(std::uint64_t job_high, std::uint64_t job_low, std::uint32_t rank, std::vector<Home> homes);
    ~DirectPaths() override;
    DirectPaths(const DirectPaths&) = delete;
    DirectPaths& operator=(const DirectPaths&) = delete;

    // The open path to the proxy of this rank of the job. Null: it is not open, in which case opening begins,
    // or it is impossible, or both ranks have the same proxy.
    Path* open_path(std::uint32_t rank);
    // Whether requests to that proxy, or to any, are outstanding that were made before `end`. A caller does
    // not wait for what other threads ask meanwhile: that may be in a bundle, which they send later.
    bool busy(std::uint32_t rank, std::uint64_t end) const;
    bool busy(std::uint64_t end) const;
    std::uint64_t next_order() const { return orders_; }
    // A caller waits for answers of that proxy, or of any. Bundled requests are sent.
    void waited(std::uint32_t rank);
    void waited();
    // A caller waits for something else, which may depend on them.
    void send_bundles();
    // Threads: any.
    bool has_bundles() const { return bundles_.load(std::memory_order_relaxed) > 0; }
    // Sends a request. Its kind, token and number are filled in here.
    void ask(Path& path, rma::direct::Request request, std::span<const std::byte> operands,
             const Asker& asker);
    // Requests between hold() and let_go() may be sent together.
    void hold(Path& path) { transport_->hold(*path.endpoint); }
    void let_go(Path& path) {
        if (path.endpoint != nullptr) transport_->let_go(*path.endpoint);
    }
    // The same, but the request may wait for others until a caller waits for it or a message is full. Its
    // operands are at most ways::most_bundled_bytes.
    void ask_with_others(Path& path, rma::direct::Request request, std::span<const std::byte> operands,
                         const Asker& asker);
    // Whether more requests fit without waiting for answers.
    bool has_room(Path& path);

    // Processes incoming messages.
    void progress() {
        if (transport_ != nullptr) transport_->progress();
    }
    // Called while a caller waits: closes paths whose proxy has owed an answer for `limit_ns`. The time
    // between two looks counts up to a quarter of it.
    void look(std::uint64_t now_ns, std::uint64_t limit_ns);
    // To sleep: event_fd() becomes readable when something arrives. False: something has arrived already.
    bool arm() { return transport_->arm() == Status::ok; }
    int event_fd() const { return transport_->event_fd(); }

  private:
    void on_message(const transport::Incoming& message) override;
    void on_endpoint_lost(transport::Endpoint& endpoint) override;

    Path* make_path(const Home& home, std::uint32_t rank);
    void on_handshake(Path& path, std::span<const std::byte> payload);
    void add(Path& path, rma::direct::Request& request, const Asker& asker);
    void send_bundle(Path& path);
    void drop_bundle(Path& path);
    void on_answer(const rma::direct::Answer& answer, std::span<const std::byte> result);
    void on_answers(const rma::direct::Bundle& bundle, std::span<const std::byte> payload);
    void say(Path& path, const control::Message& message);
    static void end(const Asker& asker, Status status);
    void close(Path& path);

    const std::uint64_t job_high_, job_low_;
    const std::uint32_t rank_;
    std::vector<Home> homes_;  // by rank
    std::unique_ptr<transport::Transport> transport_;
    bool unusable_ = false;
    std::uint64_t orders_ = 0;
    std::atomic<std::uint32_t> bundles_{0};  // paths that have one
    std::uint64_t looked_ns_ = 0;
    std::vector<std::unique_ptr<Path>> paths_;
    std::unordered_map<std::uint64_t, Path*> by_proxy_;
};

}  // namespace offpath::client
