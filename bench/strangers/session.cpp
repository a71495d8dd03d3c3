#include "session.h"

#include "common/clock.h"
#include "control/socket.h"
#include "control/tcp_socket.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

namespace strangers {

using namespace offpath;

namespace {

constexpr int patience_ms = 8000;

}  // namespace

FileDescriptor connect_locally(const Target& target) {
    FileDescriptor socket;
    std::string problem;
    if (control::connect_to(control::socket_path(target.directory), socket, problem) != Status::ok)
        throw std::runtime_error(problem);
    return socket;
}

FileDescriptor connect_over_tcp(const Target& target) {
    control::TcpAddress address;
    FileDescriptor socket;
    std::string problem;
    if (control::parse_tcp_address(target.address, address, problem) != Status::ok ||
        control::connect_tcp(address, patience_ms, socket, problem) != Status::ok)
        throw std::runtime_error(problem);
    return socket;
}

Session::Session(const Target& target, std::uint64_t job, std::uint32_t job_ranks)
    : socket_(control::MessageSocket::over_unix(connect_locally(target))) {
    control::Hello hello;
    hello.job_high = job;
    hello.job_size = job_ranks;
    hello.pid = static_cast<std::uint32_t>(getpid());
    hello.fabric.fill(std::byte{1});
    control::Message message;
    std::vector<FileDescriptor> descriptors;
    std::string problem;
    Status status = socket_.send(hello);
    if (status == Status::ok) status = socket_.receive(patience_ms, message, descriptors, problem);
    const auto* welcome = std::get_if<control::Welcome>(&message);
    control::ChannelMemory memory;
    if (status != Status::ok || welcome == nullptr || descriptors.size() < 2 ||
        control::ChannelMemory::map(descriptors[0].get(), memory) != Status::ok)
        throw std::runtime_error(
            fmt::format("the daemon does not accept a session: {} {}", to_string(status), problem));
    channel_ = std::make_unique<control::SharedClientChannel>(std::move(memory), std::move(descriptors[1]));
    constexpr std::uint32_t part = control::max_part_bytes / sizeof(std::uint64_t);
    const std::vector<std::uint64_t> proxies(std::min(part, job_ranks), welcome->proxy);
    for (std::uint32_t first = 0; first < job_ranks; first += part) {
        const auto some = std::span<const std::uint64_t>(proxies).first(std::min(part, job_ranks - first));
        if (!post(control::Ranks{first, pack(some)})) throw std::runtime_error("the daemon ended a session");
    }
}

bool Session::post(const control::Command& command) {
    const double end = bench::now_s() + 1e-3 * patience_ms;
    while (channel_->post(command) == Status::retry) {
        channel_->ring();
        usleep(100);
        if (bench::now_s() > end || socket_.peer_closed()) return false;
    }
    return true;
}

bool Session::wait(std::uint32_t slot) {
    ring();
    const double end = bench::now_s() + 1e-3 * patience_ms;
    while (channel_->completion(slot).word.load(std::memory_order_acquire) == 0) {
        usleep(20);
        if (bench::now_s() > end) return false;
    }
    return true;
}

}  // namespace strangers
