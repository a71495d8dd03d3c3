// Host: the one implementation of HostLink. host_link.cpp has creation, progress and end; host_messages.cpp
// handles incoming messages. Ownership: it owns the transport, which is destroyed first. Threads: the thread
// that holds the lock may use the transport and everything that is not atomic. A posting thread that cannot
// take the lock leaves a note (`pending_`) for the holder.
#pragma once

#include "base/file_descriptor.h"
#include "link/agent.h"
#include "link/event_set.h"
#include "link/host_channel.h"
#include "link/host_link.h"
#include "link/host_rings.h"
#include "link/host_staging.h"
#include "transport/transport.h"

#include <sched.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace offpath::link {

// The holder may use the transport. No thread blocks on this lock for long: a thread that cannot take it
// leaves a note for the holder.
class TryLock {
  public:
    bool try_acquire() { return !taken_.exchange(true, std::memory_order_seq_cst); }
    void acquire() {
        while (!try_acquire())
            sched_yield();
    }
    void release() { taken_.store(false, std::memory_order_seq_cst); }

  private:
    std::atomic<bool> taken_{false};
};

class Host final : public HostLink, transport::Handler, LinkDriver, LinkAgent::Work {
  public:
    Host(std::unique_ptr<transport::Transport> transport, std::unique_ptr<HostRings> rings)
        : out_(*transport),
          staging_(*transport, out_),
          agent_(*this),
          rings_(std::move(rings)),
          transport_(std::move(transport)) {
        transport_->set_handler(this);
    }
    ~Host() override { agent_.stop(); }

    Status start(std::string& problem);

    std::vector<std::byte> address() const override;
    std::string describe() const override { return transport_->describe(); }
    std::string rings() const override;
    Status connect(std::span<const std::byte> device_address, std::uint64_t token,
                   const control::ChannelSizes& sizes, std::unique_ptr<control::ClientChannel>& channel,
                   std::string& problem) override;
    int end_event() const override { return end_event_.get(); }
    void give_up(const char* why) override { broken(why); }
    HostLinkCounters counters() const override;

    void kick() override;
    bool begin_progress() override;
    void progress() override;
    void end_progress() override;
    bool lost(std::string& why) override;
    void abandon() override;
    void forget_channel() override;
    void enter_wait() override;
    void leave_wait() override;
    void broken(const char* why) override;

  private:
    // A payload of completions or requests that did not come with its header.
    struct Fetching : Completion {
        Host* owner = nullptr;
        Header header;
        std::vector<std::byte> bytes;
    };

    void on_message(const transport::Incoming& message) override;
    void on_endpoint_lost(transport::Endpoint& endpoint) override;
    void take_payload(const Header& header, std::span<const std::byte> payload);
    void fetch(const Header& header, void* rendezvous);
    static void on_fetched(Completion* self, Status status);

    std::optional<int> work_for_agent() override;
    // The calls below need the lock.
    unsigned work();
    Status arm();
    void look_at_rings();
    Status connect_rings(std::span<const std::byte> key, const control::ChannelSizes& sizes,
                         WrittenByDevice& written);
    void send_batches();
    void fail(std::string why);
    bool held() const { return out_.in_flight() > 0 || staging_.fetching() > 0 || fetching_ > 0; }
    // Whether something moves although no message comes.
    bool busy() const { return held() || (rings_ != nullptr && rings_->telling()); }
    void release();
    void disconnect();
    void tell_end();

    TryLock lock_;
    Outgoing out_;
    HostStaging staging_;
    std::uint64_t token_ = 0;
    transport::Endpoint* control_ = nullptr;
    transport::Endpoint* bulk_ = nullptr;
    LinkClientChannel* channel_ = nullptr;
    std::vector<Batch> batches_;
    transport::FreeList<Fetching> fetches_;
    std::size_t fetching_ = 0;
    bool closed_ = false;
    FileDescriptor end_event_;
    std::string why_lost_;

    std::atomic<bool> pending_{false};  // batches wait for the holder of the lock
    std::atomic<bool> driving_{false};  // a spinning thread makes progress; the agent ignores events
    std::atomic<bool> lost_{false};
    std::atomic<bool> tells_of_waits_{false};
    std::atomic<std::uint64_t> messages_{0}, foreign_{0};
    LinkAgent agent_;
    EventSet events_;                                  // of both, below
    std::unique_ptr<HostRings> rings_;                 // null: messages only
    std::unique_ptr<transport::Transport> transport_;  // last: its destructor calls what it holds
};

}  // namespace offpath::link
