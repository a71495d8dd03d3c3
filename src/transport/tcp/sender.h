// Sender: what one endpoint has to send, in order. It writes by itself when it is given something and the
// socket takes it; flush() goes on when there is room again. Memory that is not there costs its own message
// only: zeros go in its place, and the message says so. Ownership: its endpoint. Threads: as the transport.
#pragma once

#include "transport/free_list.h"
#include "transport/tcp/frame.h"

#include <sys/uio.h>

#include <array>
#include <deque>
#include <vector>

namespace offpath::transport::tcp {

struct Over {
    Completion* completion = nullptr;
    Status status = Status::ok;
};

class Sender {
  public:
    // Where it writes from now on.
    void connect(int socket) {
        socket_ = socket;
        writable_ = true;
    }
    void became_writable() { writable_ = true; }
    bool idle() const { return queue_.empty(); }
    std::size_t waiting() const { return queue_.size(); }

    // What is posted meanwhile leaves together, as far as a call of the system takes it. let_go: ok or
    // peer_lost.
    void hold() { held_ = true; }
    Status let_go(std::vector<Over>& over);
    // Copied. ok or peer_lost.
    Status post(std::span<const std::byte> header, std::span<const std::byte> payload);
    // ok, access or peer_lost: it is over; in_progress: `completion` comes to an Over.
    Status send(std::span<const std::byte> header, const void* payload, std::size_t bytes,
                Completion* completion);
    // As much as the socket takes. peer_lost: it is broken.
    Status flush(std::vector<Over>& over);
    // Nothing more is written.
    void cancel(Status status, std::vector<Over>& over);

  private:
    struct Node {
        std::array<std::byte, prefix_bytes + Transport::max_header> head;
        std::size_t head_bytes = 0;
        const std::byte* payload = nullptr;
        std::size_t bytes = 0;
        std::size_t sent = 0;  // of head, payload and trailer
        std::array<std::byte, trailer_bytes> trailer{};
        std::size_t trailer_size = 0;
        Status status = Status::ok;
        Completion* completion = nullptr;
        std::vector<std::byte> own;
        std::size_t total() const { return head_bytes + bytes + trailer_size; }
        bool in_payload() const { return sent >= head_bytes && sent < head_bytes + bytes; }
    };
    static constexpr std::size_t max_pieces = 16;
    std::size_t gather(std::span<iovec, max_pieces> pieces) const;
    Node& add(std::span<const std::byte> header, const void* payload, std::size_t bytes);
    void keep_rest(Node& node);
    bool write_some(std::vector<Over>& over);

    int socket_ = -1;
    bool writable_ = false, broken_ = false, held_ = false;
    bool one_piece_ = false;  // to find out which piece of memory is not there
    std::deque<Node*> queue_;
    FreeList<Node> nodes_;
    std::vector<Over> at_once_;
};

}  // namespace offpath::transport::tcp
