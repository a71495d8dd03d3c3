#include "control/message_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace offpath::control {
namespace {

constexpr std::size_t length_bytes = sizeof(std::uint32_t);
constexpr std::size_t least_frame = 8;  // a message's header
constexpr std::size_t max_output = 4 * (max_message_bytes + FrameCipher::tag_bytes + length_bytes);
// Bytes read at a time. The value is small, so that a stranger who announces a long message has to send it
// first.
constexpr std::size_t read_step = 2 << 10;
// The most steps of one receive_frame(), so that a peer that keeps sending cannot hold up the caller.
constexpr int max_steps = 256;

// `overhead`: of encryption.
bool fits(std::uint32_t length, std::size_t overhead) {
    return length >= least_frame + overhead && length <= max_message_bytes + overhead;
}

Status check_length(std::uint32_t length, std::size_t overhead, std::string& problem) {
    if (fits(length, overhead)) return Status::ok;
    if (fits(__builtin_bswap32(length), overhead)) {
        problem = "the other side has another byte order; little-endian is accepted";
        return Status::version;
    }
    problem = fmt::format("a frame of {} bytes, which is no offpath message; {} to {} are accepted", length,
                          least_frame + overhead, max_message_bytes + overhead);
    return Status::protocol;
}

Status lost_or_system(int error) {
    switch (error) {
        case EPIPE:
        case ECONNRESET:
        case ETIMEDOUT:
        case EHOSTUNREACH:
        case ENETUNREACH:
        case ENETDOWN:
            return Status::peer_lost;
        default:
            return Status::system;
    }
}

}  // namespace

MessageSocket MessageSocket::over_unix(FileDescriptor socket) {
    MessageSocket made;
    made.socket_ = std::move(socket);
    return made;
}

MessageSocket MessageSocket::over_tcp(FileDescriptor socket) {
    MessageSocket made;
    made.remote_ = true;
    const int one = 1;
    fcntl(socket.get(), F_SETFL, fcntl(socket.get(), F_GETFL) | O_NONBLOCK);
    // Messages are small, and the receiver waits for each of them.
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    made.socket_ = std::move(socket);
    return made;
}

void MessageSocket::close() {
    socket_.reset();
    input_.clear();
    output_.clear();
    sent_ = 0;
}

Status MessageSocket::send(const Message& message, std::span<const int> descriptors) {
    if (!remote_) return send_message(socket_.get(), message, descriptors);
    if (!descriptors.empty()) return Status::unsupported;
    std::vector<std::byte> bytes = encode_message(message);
    const auto length = static_cast<std::uint32_t>(bytes.size() + overhead());
    if (output_.size() - sent_ + length_bytes + length > max_output) {
        if (Status status = flush(); is_error(status)) return status;
        if (output_.size() - sent_ + length_bytes + length > max_output) return Status::retry;
    }
    if (cipher_ != nullptr) cipher_->encrypt(bytes);
    const auto head = std::as_bytes(std::span(&length, 1));
    output_.insert(output_.end(), head.begin(), head.end());
    output_.insert(output_.end(), bytes.begin(), bytes.end());
    const Status status = flush();
    return status == Status::retry ? Status::ok : status;
}

Status MessageSocket::flush() {
    while (unsent()) {
        const ssize_t sent = ::send(socket_.get(), output_.data() + sent_, output_.size() - sent_,
                                    MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0) {
            if (errno == EINTR) continue;
            if (errno != EAGAIN && errno != EWOULDBLOCK) return lost_or_system(errno);
            output_.erase(output_.begin(), output_.begin() + static_cast<std::ptrdiff_t>(sent_));
            sent_ = 0;
            return Status::retry;
        }
        sent_ += static_cast<std::size_t>(sent);
    }
    output_.clear();
    sent_ = 0;
    return Status::ok;
}

Status MessageSocket::receive_bytes(Received& received) {
    received.problem.clear();
    if (remote_) return receive_frame(received);
    const Status status = control::receive_bytes(socket_.get(), received);
    if (status == Status::protocol) received.problem = "a message with too many bytes or descriptors";
    return status;
}

Status MessageSocket::receive_frame(Received& received) {
    received.bytes.clear();
    received.descriptors.clear();
    for (int steps = 0; steps < max_steps; ++steps) {
        std::uint32_t length = 0;
        std::size_t wanted = length_bytes;
        if (input_.size() >= length_bytes) {
            std::memcpy(&length, input_.data(), length_bytes);
            if (Status status = check_length(length, overhead(), received.problem); status != Status::ok)
                return status;
            wanted += length;
        }
        if (length != 0 && input_.size() >= wanted) {
            received.bytes.assign(input_.begin() + length_bytes,
                                  input_.begin() + static_cast<std::ptrdiff_t>(wanted));
            input_.erase(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(wanted));
            if (cipher_ != nullptr && !cipher_->decrypt(received.bytes)) {
                received.problem = "a message was changed on its way";
                return Status::protocol;
            }
            heard_ = true;
            Message message;
            std::string ignored;
            if (received.bytes.size() == least_frame &&
                decode_message(received.bytes, message, ignored) == Status::ok &&
                std::holds_alternative<KeepAlive>(message))
                continue;
            return Status::ok;
        }
        const std::size_t had = input_.size();
        input_.resize(had + read_step);
        const ssize_t got = recv(socket_.get(), input_.data() + had, read_step, MSG_DONTWAIT);
        const int error = errno;
        input_.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        if (got > 0) continue;
        if (got == 0) return Status::peer_lost;
        if (error == EINTR) continue;
        return error == EAGAIN || error == EWOULDBLOCK ? Status::retry : lost_or_system(error);
    }
    return Status::retry;
}

Status MessageSocket::receive(int timeout_ms, Message& message, std::vector<FileDescriptor>& descriptors,
                              std::string& problem) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms);
    Received received;
    while (true) {
        if (unsent()) (void)flush();  // receiving will detect a lost peer
        const Status status = receive_bytes(received);
        if (status == Status::ok) break;
        if (status != Status::retry) {
            problem = status == Status::peer_lost ? "the other side closed the connection"
                      : !received.problem.empty() ? received.problem
                                                  : fmt::format("receiving: {}", to_string(status));
            return status;
        }
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
        if (left <= 0) {
            problem = fmt::format("no answer for {} s", (timeout_ms + 999) / 1000);
            return Status::unavailable;
        }
        pollfd entry{socket_.get(), static_cast<short>(unsent() ? POLLIN | POLLOUT : POLLIN), 0};
        (void)poll(&entry, 1, static_cast<int>(left));
    }
    descriptors = std::move(received.descriptors);
    return decode_message(received.bytes, message, problem);
}

Status MessageSocket::tend(std::uint64_t now_ns) {
    if (!remote_ || !socket_) return Status::ok;
    if (heard_ || heard_ns_ == 0) heard_ns_ = now_ns;
    heard_ = false;
    if (now_ns - heard_ns_ > silence_ns) return Status::peer_lost;
    if (now_ns - said_ns_ < keep_alive_ns)
        return unsent() && is_error(flush()) ? Status::peer_lost : Status::ok;
    said_ns_ = now_ns;
    return is_error(send(KeepAlive{})) ? Status::peer_lost : Status::ok;
}

}  // namespace offpath::control
