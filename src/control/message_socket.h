// MessageSocket: a connection that carries messages in either of two ways. A local attach uses datagrams of a
// unix SOCK_SEQPACKET socket, which may carry descriptors. A remote attach uses frames (u32 little-endian
// length, message) over TCP, without descriptors. Only receive() blocks. Over TCP it assembles frames and
// keeps output that the other side does not take yet, both in buffers of bounded size.
//
// Keep-alive, over TCP: tend() sends a KeepAlive when this side has been silent, and detects silence of the
// other side. It must be called at least every tend_interval_ns. Incoming KeepAlives are not passed to the
// caller.
//
// Ownership: it owns the descriptor. Threads: one at a time.
#pragma once

#include "base/file_descriptor.h"
#include "base/status.h"
#include "control/frame_cipher.h"
#include "control/messages.h"
#include "control/socket.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace offpath::control {

constexpr std::uint64_t keep_alive_ns = 2'000'000'000;
constexpr std::uint64_t silence_ns = 8'000'000'000;
constexpr std::uint64_t tend_interval_ns = keep_alive_ns / 4;

// How long a client waits for a connection to a daemon on another system, and for each answer. The sum must
// stay below the 10 s within which the program has to learn that a device is absent.
constexpr int connect_timeout_ms = 3500;
constexpr int answer_timeout_ms = 5000;
// How long a daemon waits for a newcomer's hello.
constexpr std::uint64_t hello_timeout_ns = 5'000'000'000;

class MessageSocket {
  public:
    MessageSocket() = default;
    static MessageSocket over_unix(FileDescriptor socket);
    static MessageSocket over_tcp(FileDescriptor socket);

    // Encrypts every message from now on, in both directions. Over TCP only, when both sides know that the
    // other one is about to do so.
    void encrypt(std::unique_ptr<FrameCipher> cipher) { cipher_ = std::move(cipher); }

    int fd() const { return socket_.get(); }
    explicit operator bool() const { return static_cast<bool>(socket_); }
    bool remote() const { return remote_; }
    void close();
    // Gives the connection up to the caller. Only between messages, with nothing unsent.
    FileDescriptor take_descriptor() { return std::move(socket_); }

    // retry: the output buffer has no room. peer_lost: the other side is gone. unsupported: descriptors over
    // TCP.
    Status send(const Message& message, std::span<const int> descriptors = {});
    // Sends buffered output. ok: nothing is left. retry: some is left. peer_lost: the other side is gone.
    Status flush();
    bool unsent() const { return sent_ < output_.size(); }

    // Receives one whole message, not decoded. retry: none is there. peer_lost: end of file. protocol,
    // version: the bytes are not a message; `received.problem` says why.
    Status receive_bytes(Received& received);
    // The same, but waits up to `timeout_ms` and decodes the message. unavailable: nothing came in time.
    Status receive(int timeout_ms, Message& message, std::vector<FileDescriptor>& descriptors,
                   std::string& problem);
    // Whether the other side has closed the connection. Consumes nothing.
    bool peer_closed() const { return socket_ && control::peer_closed(socket_.get()); }

    // peer_lost: the other side has been silent for silence_ns, or is gone. The clock starts with the first
    // call.
    Status tend(std::uint64_t now_ns);
    // For how long nothing has come, as of the last tend(). A side that works says something every
    // keep_alive_ns.
    std::uint64_t silent_ns(std::uint64_t now_ns) const {
        return heard_ || heard_ns_ == 0 || now_ns < heard_ns_ ? 0 : now_ns - heard_ns_;
    }

  private:
    Status receive_frame(Received& received);
    std::size_t overhead() const { return cipher_ != nullptr ? FrameCipher::tag_bytes : 0; }

    FileDescriptor socket_;
    bool remote_ = false;
    std::unique_ptr<FrameCipher> cipher_;  // null: messages are in clear
    std::vector<std::byte> input_, output_;
    std::size_t sent_ = 0;  // of output_
    bool heard_ = false;    // something has come since the last tend()
    std::uint64_t heard_ns_ = 0, said_ns_ = 0;
};

}  // namespace offpath::control
