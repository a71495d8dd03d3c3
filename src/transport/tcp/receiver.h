// Receiver: what comes in over one connection. Large payload goes from the socket straight to where the
// handler wants it; memory that is not there is found out by the kernel, and costs its own message only.
// Ownership: its connection; arrivals outlive it. Threads: as the transport. What it calls may close the
// connection, not destroy it.
#pragma once

#include "transport/tcp/frame.h"
#include "transport/tcp/pipe_copy.h"
#include "transport/tcp/sender.h"

#include <array>
#include <memory>

namespace offpath::transport::tcp {

class Receiver;

// A large payload, from its header until it has come and somebody has it or has given it up.
struct Arrival {
    Receiver* from = nullptr;  // null: it has come, or its connection is gone
    std::size_t bytes = 0, got = 0;
    std::byte* to = nullptr;
    bool fetched = false, discarded = false;
    Status status = Status::ok;
    Completion* completion = nullptr;
    std::unique_ptr<std::byte[]> own;  // for what nobody has fetched yet; untouched memory until it comes
    std::byte* wanted = nullptr;       // where fetch() wants what comes into `own`
};

class ReceiverClient {
  public:
    virtual ~ReceiverClient() = default;
    // False: not what should come; the connection ends.
    virtual bool on_frame(const Prefix& prefix, std::span<const std::byte> header) = 0;
    virtual void on_message(const Incoming& message) = 0;
    virtual void over(Completion* completion, Status status) = 0;
    virtual Arrival* new_arrival() = 0;
    virtual void end_arrival(Arrival* arrival) = 0;
    virtual PipeCopy& pipe() = 0;
    // For what nobody wants.
    virtual std::span<std::byte> scratch() = 0;
};

class Receiver {
  public:
    explicit Receiver(ReceiverClient& client) : client_(client) {}

    void connect(int socket) { socket_ = socket; }
    // `hung_up`: the other side ends, or an error waits.
    void became_readable(bool hung_up) {
        readable_ = true;
        hung_up_ = hung_up_ || hung_up;
    }
    bool readable() const { return readable_ && socket_ >= 0; }
    // What comes next is the beginning of a message: worth a look without having been told of it.
    bool between_messages() const { return arrival_ == nullptr && !streaming_ && socket_ >= 0; }
    // Takes a bounded amount; `work` grows by what there was. peer_lost: the connection has ended; protocol:
    // nonsense came; memory: there is none for it.
    Status receive(unsigned& work);
    // Before sleep: to be woken when there is enough, not by every packet.
    void prefer_much();
    // Nothing more comes. What was under way ends with peer_lost.
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
    bool streaming_ = false;  // large payload follows large payload: do not read into it
    std::size_t missing_ = prefix_bytes;
    Arrival* arrival_ = nullptr;  // whose payload or trailer is next
    std::size_t begin_ = 0, end_ = 0, last_read_ = 0;
    std::size_t wake_at_ = 1;  // SO_RCVLOWAT
    std::array<std::byte, buffer_bytes> buffer_;
};

}  // namespace offpath::transport::tcp
