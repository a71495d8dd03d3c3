// Outgoing: the messages that one end of a link sends, and those in flight. Ownership: it must live until
// in_flight() is 0 or its transport is gone. Threads: as its transport.
#pragma once

#include "link/wire.h"
#include "transport/free_list.h"
#include "transport/transport.h"

#include <cstddef>
#include <span>
#include <vector>

namespace offpath::link {

class Outgoing {
  public:
    explicit Outgoing(transport::Transport& transport) : transport_(transport) {}
    Outgoing(const Outgoing&) = delete;
    Outgoing& operator=(const Outgoing&) = delete;

    // Copies the payload before it returns. Returns ok or an error.
    Status post(transport::Endpoint& to, const Header& header, std::span<const std::byte> payload);
    // in_progress: the payload must stay in place until `then` is called, inside the transport's progress. ok
    // or an error: the send is over.
    Status send(transport::Endpoint& to, const Header& header, const void* payload, std::size_t bytes,
                Completion* then);

    std::size_t in_flight() const { return in_flight_; }

  private:
    struct Record : Completion {
        Outgoing* owner = nullptr;
        Completion* then = nullptr;
        std::vector<std::byte> own;
    };
    static void on_sent(Completion* self, Status status);
    Status begin(transport::Endpoint& to, const Header& header, const void* payload, std::size_t bytes,
                 Record* record);

    transport::Transport& transport_;
    transport::FreeList<Record> records_;
    std::size_t in_flight_ = 0;
    unsigned sends_ = 0;
};

}  // namespace offpath::link
