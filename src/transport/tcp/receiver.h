// Receiver: the incoming side of one connection. A large payload goes from the socket straight to the
// handler's destination. The kernel detects destination memory that is not mapped; only that message fails.
// Ownership: its connection; arrivals outlive it. Threads: as the transport. Callbacks may close the
// connection but must not destroy it.
#pragma once

#include "transport/tcp/frame.h"
#include "transport/tcp/pipe_copy.h"
#include "transport/tcp/sender.h"

#include <array>
#include <memory>

namespace offpath::transport::tcp {

class Receiver;

// A large payload, from the arrival of its header until it is complete and has been fetched or discarded.
struct Arrival {
    Receiver* from = nullptr;  // null: complete, or its connection is gone
    std::size_t bytes = 0, got = 0;
    std::byte* to = nullptr;
    bool fetched = false, discarded = false;
    Status status = Status::ok;
    Completion* completion = nullptr;
    std::unique_ptr<std::byte[]> own;  // holds a payload not fetched yet; pages untouched until it comes
    std::byte* wanted = nullptr;       // destination of a fetch() whose payload comes into `own`
};

class ReceiverClient {
  public:
    virtual ~ReceiverClient() = default;
    // False: the frame is not allowed here; the connection ends.
    virtual bool on_frame(const Prefix& prefix, std::span<const std::byte> header) = 0;
    virtual void on_message(const Incoming& message) = 0;
    virtual void over(Completion* completion, Status status) = 0;
    virtual Arrival* new_arrival() = 0;
    virtual void end_arrival(Arrival* arrival) = 0;
    virtual PipeCopy& pipe() = 0;
    // A buffer for payload that is discarded.
    virtual std::span<std::byte> scratch() = 0;
};

class Receiver {
  public:
    explicit Receiver(ReceiverClient& client) : client_(client) {}

    void connect(int socket) { socket_ = socket; }
    // `hung_up`: the other side has closed the connection, or an error is pending.
    void became_readable(bool hung_up) {
        readable_ = true;
        hung_up_ = hung_up_ || hung_up;
    }
    bool readable() const { return readable_ && socket_ >= 0; }
    // True between two messages. The next message may already be there, so a read without an event is
    // worthwhile.
    bool between_messages() const { return arrival_ == nullptr && !streaming_ && socket_ >= 0; }
    // Receives a bounded amount and adds to `work` what it found. Errors: peer_lost (the connection has
    // ended), protocol (invalid bytes), memory (no memory for a payload).
    Status receive(unsigned& work);
    // Called before the thread sleeps: the kernel then wakes it once enough bytes are there, not for every
    // packet.
    void prefer_much();
    // Nothing more comes. Outstanding arrivals end with peer_lost.
    void close();

    void fetch(Arrival& arrival, std::byte* to, Completion* completion);
    void discard(Arrival& arrival);

  private:
    static constexpr std::size_t buffer_bytes = std::size_t{16} << 10;

    Status parse();
    Status take_large(const Prefix& prefix);
    Status read_buffer();
    Status read_payload();
    void land(std::size_t bytes);
    void finish(Status status);
    void wake_at(std::size_t bytes);
    void took(std::size_t got, std::size_t asked);
    Status failed(ssize_t result);
    std::size_t payload_left() const { return arrival_ == nullptr ? 0 : arrival_->bytes - arrival_->got; }
    std::span<const std::byte> have() const { return {buffer_.data() + begin_, end_ - begin_}; }

    ReceiverClient& client_;
    int socket_ = -1;
    bool readable_ = false, hung_up_ = false;
    bool streaming_ = false;  // large payloads follow each other: do not read ahead into the next
    std::size_t missing_ = prefix_bytes;
    Arrival* arrival_ = nullptr;  // the arrival whose payload or trailer comes next
    std::size_t begin_ = 0, end_ = 0, last_read_ = 0;
    std::size_t wake_at_ = 1;  // SO_RCVLOWAT
    std::array<std::byte, buffer_bytes> buffer_;
};

}  // namespace offpath::transport::tcp
