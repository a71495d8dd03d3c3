#include "transport/tcp/receiver.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

namespace offpath::transport::tcp {
namespace {

// How much one connection reads in a round, so that others get their turn.
constexpr std::size_t round_bytes = std::size_t{1} << 20;
// How much of a large payload should be there before the socket wakes the receiver.
constexpr std::size_t much = std::size_t{128} << 10;
// The most memory for payloads that were not fetched yet.
constexpr std::size_t max_own_bytes = std::size_t{1} << 30;

}  // namespace

Status Receiver::receive(unsigned& work) {
    std::size_t total = 0;
    while (readable() && total < round_bytes) {
        const Status status = payload_left() > 0 ? read_payload() : read_buffer();
        if (status == Status::retry) break;
        if (status != Status::ok) return status;
        total += std::exchange(last_read_, 0);
        ++work;
        if (const Status parsed = parse(); parsed != Status::ok) return parsed;
    }
    // The rest of the payload may be less than the amount at which the socket wakes the receiver.
    if (socket_ >= 0 && !readable_ && wake_at_ > 1) {
        const std::size_t next = payload_left() > 0 ? payload_left() + trailer_bytes : 1;
        if (next < wake_at_) wake_at(next);
    }
    return Status::ok;
}

Status Receiver::failed(ssize_t result) {
    if (result == 0) return Status::peer_lost;
    if (errno == EINTR) return Status::ok;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return Status::peer_lost;
    readable_ = false;
    return Status::retry;
}

// A socket that returned less than was asked for is empty, and epoll reports new data. But if the peer has
// already hung up, epoll may have reported it before. If the target is the program's memory, a missing page
// may be the reason for a short read.
void Receiver::took(std::size_t got, std::size_t asked) {
    last_read_ = got;
    if (got < asked && !hung_up_) readable_ = false;
}

Status Receiver::read_buffer() {
    if (begin_ > 0) {
        std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
    }
    const std::size_t room = streaming_ ? missing_ : buffer_.size() - end_;
    const ssize_t got = recv(socket_, buffer_.data() + end_, room, MSG_DONTWAIT);
    if (got <= 0) return failed(got);
    end_ += static_cast<std::size_t>(got);
    took(static_cast<std::size_t>(got), room);
    return Status::ok;
}

// Also reads what follows the payload: the trailer, and the beginning of the next frame.
Status Receiver::read_payload() {
    Arrival& arrival = *arrival_;
    const bool wanted = !arrival.discarded && arrival.status == Status::ok;
    const std::size_t left = payload_left();
    begin_ = end_ = 0;
    const std::span<std::byte> scratch = client_.scratch();
    iovec pieces[2] = {{scratch.data(), std::min(left, scratch.size())},
                       {buffer_.data(), trailer_bytes + prefix_bytes}};
    if (wanted) pieces[0] = {arrival.to + arrival.got, left};
    const bool last = pieces[0].iov_len == left;
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = last ? 2 : 1;
    const ssize_t result = recvmsg(socket_, &message, MSG_DONTWAIT);
    if (result < 0 && errno == EFAULT && wanted) {
        arrival.status = Status::access;
        return Status::ok;
    }
    if (result <= 0) return failed(result);
    const auto got = static_cast<std::size_t>(result);
    took(got, wanted ? 0 : pieces[0].iov_len + (last ? pieces[1].iov_len : 0));
    arrival.got += std::min(got, pieces[0].iov_len);
    end_ = got - std::min(got, pieces[0].iov_len);
    return Status::ok;
}

// Moves payload that arrived in the buffer together with its header.
void Receiver::land(std::size_t bytes) {
    Arrival& arrival = *arrival_;
    if (!arrival.discarded && arrival.status == Status::ok)
        arrival.status = client_.pipe().copy(arrival.to + arrival.got, buffer_.data() + begin_, bytes);
    arrival.got += bytes;
    begin_ += bytes;
}

Status Receiver::parse() {
    while (socket_ >= 0) {
        missing_ = 0;
        if (arrival_ != nullptr) {
            if (const std::size_t bytes = std::min(payload_left(), have().size()); bytes > 0) land(bytes);
            if (payload_left() > 0) return Status::ok;
            if (have().size() < trailer_bytes) {
                missing_ = trailer_bytes + prefix_bytes - have().size();
                return Status::ok;
            }
            const auto status = static_cast<Status>(static_cast<std::int32_t>(read_little(have(), 0, 4)));
            if (status != Status::ok && status != Status::access) return Status::protocol;
            begin_ += trailer_bytes;
            finish(status);
            continue;
        }
        const auto bytes = have();
        Prefix prefix;
        if (bytes.size() < prefix_bytes) {
            missing_ = prefix_bytes - bytes.size();
            return Status::ok;
        }
        if (!decode_prefix(bytes, prefix)) return Status::protocol;
        const bool large = prefix.payload > inline_bytes;
        if (!large) streaming_ = false;
        const std::size_t wanted = prefix_bytes + prefix.header + (large ? 0 : prefix.payload);
        if (bytes.size() < wanted) {
            missing_ = wanted - bytes.size();
            return Status::ok;
        }
        const auto header = bytes.subspan(prefix_bytes, prefix.header);
        begin_ += wanted;
        if (!client_.on_frame(prefix, header)) return Status::protocol;
        if (prefix.kind != FrameKind::message || socket_ < 0) continue;
        if (large) {
            if (const Status status = take_large(prefix); status != Status::ok) return status;
            continue;
        }
        Incoming message;
        message.header = header;
        message.bytes = prefix.payload;
        message.data = bytes.data() + prefix_bytes + prefix.header;
        client_.on_message(message);
    }
    return Status::ok;
}

Status Receiver::take_large(const Prefix& prefix) {
    const auto header = std::span(buffer_).subspan(begin_ - prefix.header, prefix.header);
    streaming_ = true;
    Arrival* const arrival = client_.new_arrival();
    *arrival = {};
    arrival->from = this;
    arrival->bytes = prefix.payload;
    arrival_ = arrival;
    Incoming message;
    message.header = header;
    message.bytes = prefix.payload;
    message.rendezvous = arrival;
    client_.on_message(message);
    if (arrival_ != arrival || arrival->fetched || arrival->discarded) return Status::ok;
    if (arrival->bytes > max_own_bytes) return Status::protocol;
    arrival->own.reset(new (std::nothrow) std::byte[arrival->bytes]);
    arrival->to = arrival->own.get();
    if (arrival->to == nullptr) return Status::memory;
    return Status::ok;
}

void Receiver::fetch(Arrival& arrival, std::byte* to, Completion* completion) {
    arrival.fetched = true;
    arrival.completion = completion;
    (arrival.own == nullptr ? arrival.to : arrival.wanted) = to;
}

void Receiver::discard(Arrival& arrival) {
    arrival.discarded = true;
}

void Receiver::finish(Status status) {
    Arrival& arrival = *std::exchange(arrival_, nullptr);
    arrival.from = nullptr;
    if (arrival.status == Status::ok) arrival.status = status;
    if (arrival.fetched) {
        if (arrival.wanted != nullptr && arrival.status == Status::ok)
            arrival.status = client_.pipe().copy(arrival.wanted, arrival.own.get(), arrival.bytes);
        client_.over(arrival.completion, arrival.status);
    }
    if (arrival.fetched || arrival.discarded) client_.end_arrival(&arrival);
}

void Receiver::wake_at(std::size_t bytes) {
    const int value = static_cast<int>(bytes);
    if (setsockopt(socket_, SOL_SOCKET, SO_RCVLOWAT, &value, sizeof value) == 0) wake_at_ = bytes;
}

void Receiver::prefer_much() {
    if (socket_ < 0 || payload_left() <= much / 4) return;
    const std::size_t bytes = std::min(payload_left() + trailer_bytes, much);
    if (bytes != wake_at_) wake_at(bytes);
}

void Receiver::close() {
    socket_ = -1;
    if (arrival_ != nullptr) finish(Status::peer_lost);
}

}  // namespace offpath::transport::tcp
