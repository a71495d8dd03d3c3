// DeviceStaging: the device's half of the staged transfers of one link. It cuts transfers into requests,
// keeps a window of bytes in flight in each direction, and checks every answer against its request.
// Ownership: the link's peer; it must outlive what the transport holds of it. Threads: the proxy's.
// Completions of transfers are called only by progress(), stop() and abandon(); the on_* calls only record.
#pragma once

#include "base/completion.h"
#include "link/outgoing.h"
#include "memory/staged_queue.h"

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

namespace offpath::link {

class DeviceStaging {
  public:
    // Limits on what is in flight in each direction. They are equal because the answers of one direction
    // travel behind the data of the other: of two unequal windows the larger would starve the smaller.
    static constexpr std::size_t window_bytes = std::size_t{2} << 20;
    static constexpr std::size_t window_requests = 256;

    struct Ends {
        transport::Transport& transport;
        Outgoing& out;
        std::uint64_t token = 0;
        transport::Endpoint* control = nullptr;
        transport::Endpoint* bulk = nullptr;
    };
    // `ends` is read again on every use.
    explicit DeviceStaging(const Ends& ends) : ends_(ends) {}
    DeviceStaging(const DeviceStaging&) = delete;
    DeviceStaging& operator=(const DeviceStaging&) = delete;

    // These behave as in memory::StagedTransfers.
    Status start(memory::StagingDirection direction, std::uint64_t host_address, std::byte* local,
                 std::size_t bytes, Completion* completion);
    Status copy(std::uint64_t from, std::uint64_t to, std::size_t bytes, Completion* completion);
    unsigned progress();
    bool has_work() const;
    void stop(Status reason);
    bool drained() const { return queue_.live() == 0; }
    // Called when nothing is in flight, or can no longer be waited for. Every transfer ends with `reason`.
    void abandon(Status reason);

    // Answers of the host. False: there is no such request.
    bool on_data(const Header& header, const transport::Incoming& message);
    bool on_stored(std::span<const std::byte> items, std::uint32_t count);

    // fetching(): payloads being fetched. transport_status(): not ok after the transport failed; the link is
    // then unusable.
    std::size_t fetching() const { return fetching_; }
    Status transport_status() const { return transport_status_; }

    std::uint64_t bytes_to_device() const { return bytes_to_device_; }
    std::uint64_t bytes_to_host() const { return bytes_to_host_; }

  private:
    // A piece in flight. It is over when no answer is awaited and the transport holds nothing of it.
    struct StagedRequest : Completion {
        DeviceStaging* owner = nullptr;
        memory::StagedTransfer* transfer = nullptr;  // null: free
        std::size_t offset = 0;
        std::uint32_t bytes = 0;
        std::uint32_t id = 0;       // index, with a generation in the bits above
        std::uint32_t awaited = 0;  // a bit per part: data, or the one answer to a store
        std::uint32_t held = 0;     // sends and fetches
    };
    struct PartFetch : Completion {
        DeviceStaging* owner = nullptr;
        StagedRequest* request = nullptr;
    };
    struct InFlight {
        std::size_t bytes = 0, requests = 0;
    };

    InFlight& in_flight(memory::StagingDirection direction) {
        return in_flight_[static_cast<std::size_t>(direction) - 1];
    }
    unsigned issue_stores();
    unsigned issue_fetches();
    unsigned issue_copies();
    void post_items(Kind kind, std::uint32_t count);
    // The next transfer in this direction, if the window has room for a piece of it; else null.
    memory::StagedTransfer* next(memory::StagingDirection direction) const;
    StagedRequest& take_request(memory::StagedTransfer& transfer, std::size_t bytes);
    StagedRequest* find(std::uint32_t id);
    void finish_if_over(StagedRequest& request);
    void transport_failed(Status status);
    static void on_sent(Completion* self, Status status);
    static void on_fetched(Completion* self, Status status);

    const Ends& ends_;
    std::deque<StagedRequest> requests_;
    std::vector<StagedRequest*> free_requests_;
    memory::StagedQueue queue_;
    transport::FreeList<PartFetch> fetches_;
    std::array<InFlight, 3> in_flight_{};  // by direction
    std::vector<std::byte> items_;
    Status transport_status_ = Status::ok;
    std::size_t fetching_ = 0;
    std::uint64_t bytes_to_device_ = 0, bytes_to_host_ = 0;
};

}  // namespace offpath::link
