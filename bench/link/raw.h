// The bare transport between the two processes of bench-link, which is the upper bound for a link, and the
// files through which the processes meet.
#pragma once

#include "common/clock.h"
#include "transport/transport.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace offpath::link::bench {

using ::bench::now_s;
double median(std::vector<double> values);
void put(const std::string& path, std::span<const std::byte> bytes);
// Waits up to 20 s for the file, reads it and removes it. Throws.
std::vector<std::byte> get(const std::string& path);

class Raw : transport::Handler {
  public:
    // `way`: tcp or ucx.
    Raw(const std::string& way, const std::string& devices, const std::string& dir, bool host);
    void serve();  // called by the device

    // Called by the host. ping: seconds of a round trip of 64 bytes, both sides spinning. The others: bytes
    // per second of messages pushed as a link pushes them, without copies.
    double ping();
    double stream(bool out, double for_seconds);
    void bye();

  private:
    enum class Kind : std::uint64_t { ping, data, begin, end, bye };
    struct Header {
        Kind kind = Kind::ping;
        double value = 0;  // begin: seconds; end: bytes
    };
    void send(Header header, std::span<const std::byte> payload = {});
    double pour(double for_seconds);
    void on_message(const transport::Incoming& message) override;
    void on_endpoint_lost(transport::Endpoint&) override { lost_ = true; }
    void step();

    transport::Endpoint* peer_ = nullptr;
    bool host_ = false, lost_ = false, bye_ = false;
    std::uint64_t pings_ = 0, arrived_ = 0;
    double to_pour_ = 0, poured_ = -1;
    std::unique_ptr<transport::Transport> transport_;
};

}  // namespace offpath::link::bench
