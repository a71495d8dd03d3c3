#include "transport/tcp/sender.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace offpath::transport::tcp {
namespace {

constexpr std::array<std::byte, std::size_t{16} << 10> zeros{};

iovec piece(const std::byte* data, std::size_t bytes) {
    return {const_cast<std::byte*>(data), bytes};
}

}  // namespace

Sender::Node& Sender::add(std::span<const std::byte> header, const void* payload, std::size_t bytes) {
    Node& node = *nodes_.take();
    encode_prefix({FrameKind::message, header.size(), bytes}, node.head);
    if (!header.empty()) std::memcpy(node.head.data() + prefix_bytes, header.data(), header.size());
    node.head_bytes = prefix_bytes + header.size();
    node.payload = static_cast<const std::byte*>(payload);
    node.bytes = bytes;
    node.sent = 0;
    node.trailer = {};
    node.trailer_size = bytes > inline_bytes ? trailer_bytes : 0;
    node.status = Status::ok;
    node.completion = nullptr;
    if (!node.small()) {
        queue_.push_back(&node);
        return node;
    }
    const bool bulk_has_begun = !queue_.empty() && !queue_.front()->small() && queue_.front()->sent > 0;
    queue_.insert(queue_.begin() + static_cast<std::ptrdiff_t>(small_ + (bulk_has_begun ? 1 : 0)), &node);
    ++small_;
    return node;
}

void Sender::take_front() {
    Node* const node = queue_.front();
    if (node->small()) --small_;
    queue_.pop_front();
    nodes_.give_back(node);
}

// Copies the payload, because the caller may reuse it.
void Sender::keep_rest(Node& node) {
    node.own.assign(node.payload, node.payload + node.bytes);
    node.payload = node.own.data();
}

Status Sender::post(std::span<const std::byte> header, std::span<const std::byte> payload) {
    if (broken_) return Status::peer_lost;
    const bool now = queue_.empty() && !held_;
    Node& node = add(header, payload.data(), payload.size());
    if (now && flush(at_once_) != Status::ok) return Status::peer_lost;
    if (!queue_.empty()) keep_rest(node);
    at_once_.clear();
    return Status::ok;
}

Status Sender::let_go(std::vector<Over>& over) {
    held_ = false;
    return flush(over);
}

Status Sender::send(std::span<const std::byte> header, const void* payload, std::size_t bytes,
                    Completion* completion) {
    if (bytes <= inline_bytes) return post(header, {static_cast<const std::byte*>(payload), bytes});
    if (broken_) return Status::peer_lost;
    const bool alone = queue_.empty();
    Node& node = add(header, payload, bytes);
    node.completion = completion;
    if (alone && flush(at_once_) != Status::ok) {
        node.completion = nullptr;
        return Status::peer_lost;
    }
    if (!queue_.empty()) return Status::in_progress;
    const Status status = at_once_.back().status;
    at_once_.clear();
    return status;
}

Status Sender::flush(std::vector<Over>& over) {
    while (socket_ >= 0 && writable_ && !broken_ && !queue_.empty())
        if (!write_some(over)) break;
    return broken_ ? Status::peer_lost : Status::ok;
}

std::size_t Sender::gather(std::span<iovec, max_pieces> pieces) const {
    std::size_t count = 0;
    for (const Node* node : queue_) {
        std::size_t skip = node->sent;
        for (const iovec& each :
             {piece(node->head.data(), node->head_bytes), piece(node->payload, node->bytes),
              piece(node->trailer.data(), node->trailer_size)}) {
            if (skip >= each.iov_len) {
                skip -= each.iov_len;
                continue;
            }
            const std::size_t rest = each.iov_len - skip;
            if (node->status != Status::ok && each.iov_base == node->payload) {
                pieces[count++] = piece(zeros.data(), std::min(rest, zeros.size()));
                if (rest > zeros.size()) return count;
            } else {
                pieces[count++] = piece(static_cast<const std::byte*>(each.iov_base) + skip, rest);
            }
            skip = 0;
            if (one_piece_ || count == max_pieces) return count;
        }
    }
    return count;
}

// False: nothing can be written at present.
bool Sender::write_some(std::vector<Over>& over) {
    std::array<iovec, max_pieces> pieces;
    const std::size_t count = gather(pieces);
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    const ssize_t written = sendmsg(socket_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (written < 0) {
        if (errno == EINTR) return true;
        if (errno == EAGAIN || errno == EWOULDBLOCK) {
            writable_ = false;
            return false;
        }
        Node& first = *queue_.front();
        if (errno == EFAULT && !one_piece_) {
            one_piece_ = true;
            return true;
        }
        if (errno == EFAULT && first.in_payload() && first.status == Status::ok) {
            first.status = Status::access;
            write_little(first.trailer, 0, static_cast<std::uint32_t>(Status::access), trailer_bytes);
            one_piece_ = false;
            return true;
        }
        broken_ = true;
        return false;
    }
    one_piece_ = false;
    for (auto rest = static_cast<std::size_t>(written); !queue_.empty();) {
        Node& node = *queue_.front();
        const std::size_t taken = std::min(rest, node.total() - node.sent);
        node.sent += taken;
        rest -= taken;
        if (node.sent < node.total()) break;
        over.push_back({node.completion, node.status});
        take_front();
    }
    return true;
}

void Sender::cancel(Status status, std::vector<Over>& over) {
    broken_ = true;
    socket_ = -1;
    while (!queue_.empty()) {
        over.push_back({queue_.front()->completion, status});
        take_front();
    }
}

}  // namespace offpath::transport::tcp
