// Platform: the figures of a machine, as a file in JSON gives them. docs/simulation.md describes the format.
//
// A value type. Reading throws PlatformError, which names the file, the field and the value. Threads: any.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace offpath::sim {

struct PlatformError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

enum class HostMemoryKind : std::uint8_t { map, cma, staged, xgvmi };
enum class Protocol : std::uint8_t {
    rdma,   // the network card reads and writes memory; the peer's core takes no part
    stream  // cores copy every byte into and out of a socket
};

// An MPI library over TCP sends this much without asking: btl_tcp_eager_limit of Open MPI, which includes a
// header.
constexpr std::uint64_t library_eager_bytes = (64 << 10) - 64;

// Times in seconds, rates in bytes per second.
struct Platform {
    std::string name;
    HostMemoryKind memory = HostMemoryKind::cma;
    Protocol protocol = Protocol::stream;
    bool shared_cores = false;  // all nodes share one set of host cores and one of device cores, as in a lab

    std::uint32_t host_cores = 1, device_cores = 1;  // of a node

    double link_Bps = 0, link_latency_s = 0;      // between two nodes: a port's rate, and one way in all
    double link_burst_bytes = 0;                  // what passes a port at once after a pause
    double switch_latency_s = 0;                  // of each further switch of a topology
    double inside_Bps = 0, inside_latency_s = 0;  // between processes of a node

    // One core's work for the network: for a message, and for each byte where it copies.
    struct Work {
        double send_s = 0, receive_s = 0, fetch_s = 0, send_byte_s = 0, receive_byte_s = 0;
        double copy_Bps = 0;     // copies in memory
        double reduce_Bps = 0;   // sums of doubles
        double round_s = 0;      // of a round of the loop, or of a call into the library
        double operation_s = 0;  // to start an operation
        double switch_s = 0;     // another process takes the core
    };
    Work host, device;

    double host_memory_call_s = 0, host_memory_Bps = 0;  // cma: one call, and its copy
    double bus_Bps = 0, bus_latency_s = 0;               // staged: between host and device

    double post_s = 0;        // the host hands an operation over
    double command_s = 0;     // until the device can see it
    double completion_s = 0;  // until the host sees the end
    double wake_s = 0;        // a device that sleeps
    double spin_s = 0;        // how long it polls before it sleeps
    // How long a process has a host core that it shares with others, even if it only waits actively. 0: it
    // goes round as soon as it has something to do.
    double turn_s = 0;
    double connect_s = 0;  // the first message between two proxies waits for a connection
};

// `text` is the contents of the file `path`.
Platform parse_platform(const std::string& path, const std::string& text);

}  // namespace offpath::sim
