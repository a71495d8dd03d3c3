// Sender: the outgoing queue of one endpoint. It writes at once while the socket accepts data; flush()
// continues when the socket has room again. Small messages keep their order and pass all payloads above
// inline_bytes that have not begun, so that what steers does not wait for bulk. The socket holds little that
// it has not sent (unsent_bytes), because nothing passes that. Source memory that is not mapped spoils its
// own message only: zeros replace it, and the trailer reports the error. Ownership: its endpoint. Threads: as
// the transport.
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

// The kernel takes more once less than half of this is unsent. A smaller value wakes the sender more often.
constexpr int unsent_bytes = 256 << 10;

class Sender {
  public:
    // Sets the socket that it writes to from now on.
    void connect(int socket) {
        socket_ = socket;
        writable_ = true;
    }
    void became_writable() { writable_ = true; }
    bool idle() const { return queue_.empty(); }
    std::size_t waiting() const { return queue_.size(); }

    // Between hold() and let_go(), posted messages are collected and leave in as few system calls as
    // possible. let_go() returns ok or peer_lost.
    void hold() { held_ = true; }
    Status let_go(std::vector<Over>& over);
    // Copies the message. Returns ok or peer_lost.
    Status post(std::span<const std::byte> header, std::span<const std::byte> payload);
    // ok, access, peer_lost: the send is over. in_progress: an Over with `completion` follows.
    Status send(std::span<const std::byte> header, const void* payload, std::size_t bytes,
                Completion* completion);
    // Writes as much as the socket takes. peer_lost: the connection is broken.
    Status flush(std::vector<Over>& over);
    // Ends everything queued with `status`; nothing more is written.
    void cancel(Status status, std::vector<Over>& over);

  private:
    struct Node {
        std::array<std::byte, prefix_bytes + Transport::max_wire_header> head;
        std::size_t head_bytes = 0;
        const std::byte* payload = nullptr;
        std::size_t bytes = 0;
        std::size_t sent = 0;  // of head, payload and trailer
        std::array<std::byte, trailer_bytes> trailer{};
        std::size_t trailer_size = 0;
        Status status = Status::ok;
        Completion* completion = nullptr;
        std::vector<std::byte> own;
        bool small() const { return bytes <= inline_bytes; }
        std::size_t total() const { return head_bytes + bytes + trailer_size; }
        bool in_payload() const { return sent >= head_bytes && sent < head_bytes + bytes; }
    };
    static constexpr std::size_t max_pieces = 16;
    std::size_t gather(std::span<iovec, max_pieces> pieces) const;
    Node& add(std::span<const std::byte> header, const void* payload, std::size_t bytes);
    void take_front();
    void keep_rest(Node& node);
    bool write_some(std::vector<Over>& over);

    int socket_ = -1;
    bool writable_ = false, broken_ = false, held_ = false;
    bool one_piece_ = false;  // write one piece at a time, to find the one that is not mapped
    // The front may have begun. Small messages follow, then payloads that have not begun.
    std::deque<Node*> queue_;
    std::size_t small_ = 0;  // small messages in the queue
    FreeList<Node> nodes_;
    std::vector<Over> at_once_;
};

}  // namespace offpath::transport::tcp
