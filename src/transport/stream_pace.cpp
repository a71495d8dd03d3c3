#include "transport/stream_pace.h"

#include <fmt/format.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

namespace offpath::transport {
namespace {

constexpr std::chrono::milliseconds look_every{4}, search_every{100}, active_for{20};
constexpr std::uint32_t standing_us = 1000;
constexpr std::uint64_t beyond_any_network = std::uint64_t{1} << 38;
constexpr int deepest_set = 4;
constexpr std::size_t most_looks = 64;  // at one time
// With more, a transfer would be in the socket as a whole before there is anything to see.
constexpr int unsent_bytes = 256 << 10;

// The descriptors in an epoll set, as the kernel lists them.
template <typename Visit>
void each_watched(int epoll, Visit&& visit) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> list(
        std::fopen(fmt::format("/proc/self/fdinfo/{}", epoll).c_str(), "re"), std::fclose);
    if (!list) return;
    char line[256];
    int watched = -1;
    while (std::fgets(line, sizeof line, list.get()) != nullptr)
        if (std::sscanf(line, "tfd: %d", &watched) == 1) visit(watched);
}

void find_sockets(int epoll, int depth, std::vector<int>& found) {
    each_watched(epoll, [&](int descriptor) {
        int protocol = 0, listens = 0;
        socklen_t size = sizeof protocol;
        if (getsockopt(descriptor, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0) {
            if (depth < deepest_set) find_sockets(descriptor, depth + 1, found);
            return;
        }
        size = sizeof listens;
        if (protocol == IPPROTO_TCP &&
            getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens == 0)
            found.push_back(descriptor);
    });
}

bool look(int socket, StreamSample& sample) {
    tcp_info info;
    std::memset(&info, 0, sizeof info);
    socklen_t size = sizeof info;
    if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
    sample.acknowledged = info.tcpi_bytes_acked;
    sample.unsent = info.tcpi_notsent_bytes > 0;
    sample.rtt_us = info.tcpi_rtt;
    sample.min_rtt_us = info.tcpi_min_rtt;
    return true;
}

}  // namespace

std::uint64_t Pacer::pace_after(const StreamSample& sample) {
    const StreamSample last = std::exchange(last_, sample);
    if (!sample.unsent) return pace_;
    const std::uint64_t apart_ns = sample.now_ns - last.now_ns;
    if (last.unsent && apart_ns > 0 && apart_ns <= most_apart_ns)
        rates_[next_++ % rates_.size()] =
            static_cast<std::uint64_t>(static_cast<double>(sample.acknowledged - last.acknowledged) * 1e9 /
                                       static_cast<double>(apart_ns));
    if (sample.rtt_us <= sample.min_rtt_us + standing_us) {
        if (pace_ != no_pace) pace_ = pace_ >= beyond_any_network ? no_pace : pace_ + pace_ / 4 + 1;
        return pace_;
    }
    const std::uint64_t fastest = *std::ranges::max_element(rates_);
    if (fastest > 0) pace_ = std::max(fastest + fastest / 4, slowest_pace);
    return pace_;
}

void StreamPace::find_streams(int epoll) {
    found_.clear();
    find_sockets(epoll, 0, found_);
    std::erase_if(streams_,
                  [&](const Stream& each) { return std::ranges::find(found_, each.socket) == found_.end(); });
    for (const int socket : found_) {
        if (std::ranges::find(streams_, socket, &Stream::socket) != streams_.end()) continue;
        (void)setsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent_bytes, sizeof unsent_bytes);
        streams_.push_back({socket, {}, no_pace});
    }
}

void StreamPace::sent(int epoll) {
    active_ = true;
    sent_ = Clock::now();
    look_again(epoll);
}

void StreamPace::look_again(int epoll) {
    const auto now = Clock::now();
    if (now - looked_ < look_every) return;
    active_ = now - sent_ < active_for;
    looked_ = now;
    if (now - searched_ >= search_every) {
        searched_ = now;
        find_streams(epoll);
    }
    for (std::size_t n = std::min(streams_.size(), most_looks); n > 0; --n) {
        Stream& stream = streams_[next_++ % streams_.size()];
        StreamSample sample;
        sample.now_ns = static_cast<std::uint64_t>(
            std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count());
        if (!look(stream.socket, sample)) continue;
        const std::uint64_t pace = stream.pacer.pace_after(sample);
        if (pace == stream.pace) continue;
        if (setsockopt(stream.socket, SOL_SOCKET, SO_MAX_PACING_RATE, &pace, sizeof pace) == 0)
            stream.pace = pace;
    }
}

}  // namespace offpath::transport
