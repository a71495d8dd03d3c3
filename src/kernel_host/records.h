// The records between a proxy and a kernel host, on a SOCK_SEQPACKET socket that also carries descriptors.
// Both are of one build and on one machine. The host trusts its proxy. The proxy trusts nothing, because the
// host runs the clients' code. Pure.
#pragma once

#include "base/field_lists.h"
#include "base/status.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace offpath::kernel_host {

// The descriptors that the host has when it starts (host_process.h).
constexpr int socket_fd = 3, shared_fd = 4, output_fd = 5, error_output_fd = 6;
constexpr std::size_t max_record_bytes = 16 << 10;
constexpr std::size_t max_answer_text_bytes = 1024;
constexpr std::size_t max_regions = 17;  // that come with one record

// Shared memory: tells the proxy, without a system call, that there are answers on the socket, and how often
// the host has stopped for it.
struct Shared {
    alignas(64) std::atomic<std::uint64_t> answers;
    std::atomic<std::uint32_t> stops;
};

struct Load {
    std::uint64_t number = 0, kernel = 0;
    std::string path, symbol;
    static void fields(auto& self, auto&& each) {
        each(self.number, self.kernel);
        each.list(self.path, max_record_bytes);
        each.list(self.symbol, max_record_bytes);
    }
    friend bool operator==(const Load&, const Load&) = default;
};
struct Unload {
    std::uint64_t kernel = 0;
    static void fields(auto& self, auto&& each) { each(self.kernel); }
    friend bool operator==(const Unload&, const Unload&) = default;
};
struct Unmap {
    std::uint64_t region = 0;
    static void fields(auto& self, auto&& each) { each(self.region); }
    friend bool operator==(const Unmap&, const Unmap&) = default;
};
// Its memory file is among the descriptors, in order. Region 0 holds the proxy's copies and replaces the
// previous region 0.
struct Region {
    std::uint64_t id = 0, bytes = 0;
    friend bool operator==(const Region&, const Region&) = default;
};
struct Buffer {
    std::uint64_t region = 0, offset = 0, bytes = 0;
    friend bool operator==(const Buffer&, const Buffer&) = default;
};
struct Run {
    std::uint64_t number = 0, kernel = 0;
    std::vector<Region> regions;
    std::vector<Buffer> buffers;
    std::vector<std::byte> arguments;
    static void fields(auto& self, auto&& each) {
        each(self.number, self.kernel);
        each.list(self.regions, max_record_bytes);
        each.list(self.buffers, max_record_bytes);
        each.list(self.arguments, max_record_bytes);
    }
    const char* problem() const { return regions.size() > max_regions ? "too many regions" : nullptr; }
    friend bool operator==(const Run&, const Run&) = default;
};
using Request = std::variant<Load, Unload, Unmap, Run>;

// Answers a Load or a Run.
struct Answer {
    std::uint64_t number = 0;
    Status status = Status::ok;
    std::string text;  // of an error
    static void fields(auto& self, auto&& each) {
        each(self.number, self.status);
        each.text(self.text, max_answer_text_bytes);
    }
    friend bool operator==(const Answer&, const Answer&) = default;
};

std::vector<std::byte> encode(const Request& request);
bool decode(std::span<const std::byte> record, Request& request);
std::vector<std::byte> encode(const Answer& answer);
bool decode(std::span<const std::byte> record, Answer& answer);

}  // namespace offpath::kernel_host
