// StatusPage: counters that proxies show to `offpath top` while they work. They are in memory that readers of
// the same user map through /proc/PID/fd, so a reader asks the daemon for nothing, and nothing is left when
// the daemon is killed. Ownership: the daemon owns the page and outlives its proxies. Threads: each proxy
// writes its own part; other processes read. A sequence number tells readers that a part changed while they
// read it.
#pragma once

#include "base/file_descriptor.h"
#include "base/status.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace offpath::proxy {

inline constexpr char status_page_name[] = "offpath-status";
inline constexpr std::uint64_t status_page_magic = 0x3153'5441'5450'464f;  // "OFPTATS1", little-endian
inline constexpr std::size_t shown_sessions = 60;  // of a proxy; more are only counted

// All words in the machine's byte order. python/offpath/status_page.py reads the same layout.
struct ShownSession {
    char name[40];  // padded with zeros
    std::uint64_t started, outstanding, reserved;
};
struct ShownProxy {
    std::uint64_t sequence;  // odd while it is written
    std::uint64_t thread;    // its id in the daemon's namespace
    std::int64_t cpu;        // -1: any
    std::uint64_t sessions, outstanding;
    std::uint64_t schedules_run, schedules_failed;
    std::uint64_t bytes_sent, bytes_received, bytes_copied, bytes_reduced;
    std::uint64_t written_ns;  // steady clock
    std::uint64_t cpu_ns;      // that its thread has used
    // Of the large payloads received, by the copies that proxies made on the way (engine::Copies).
    std::uint64_t bytes_direct, bytes_copied_once, bytes_copied_more_often;
    std::uint64_t reserved[16];
    ShownSession shown[shown_sessions];
};
struct ShownDaemon {
    std::uint64_t magic, proxies, process, started_ns;  // by the steady clock
    char node[64];
    std::uint64_t reserved[52];
};
static_assert(sizeof(ShownSession) == 64 && sizeof(ShownProxy) == 4096 && sizeof(ShownDaemon) == 512);

class StatusPage {
  public:
    StatusPage() = default;
    ~StatusPage();
    StatusPage(const StatusPage&) = delete;
    StatusPage& operator=(const StatusPage&) = delete;

    // Errors: system. The daemon then works without the page.
    Status open(const std::string& node, std::uint32_t proxies, std::string& problem);
    // The part of a proxy; null without a page.
    ShownProxy* part(std::uint32_t proxy);

  private:
    FileDescriptor file_;
    std::byte* memory_ = nullptr;
    std::size_t bytes_ = 0;
};

// Between these, a proxy writes its part.
void begin_showing(ShownProxy& part);
void end_showing(ShownProxy& part);
// Shortens `name` if need be.
void show_session(ShownSession& shown, std::string_view name, std::uint64_t started,
                  std::uint64_t outstanding);

}  // namespace offpath::proxy
