// Trace: records of what this process does, for `offpath run --trace` (docs/trace.md). A record goes to
// memory of the calling thread, which is mapped from a file (layout.h): no allocation, no lock, and no system
// call except once in a few thousand records, when a thread needs another chunk. When the file is full, later
// records are dropped and counted. Without a trace, each function here costs one relaxed load and a branch.
//
// Threads: any. A child that the process forks writes nothing.
#pragma once

#include "base/status.h"
#include "trace/file.h"
#include "trace/layout.h"

#include <atomic>
#include <string>
#include <string_view>

namespace offpath::trace {

extern std::atomic<bool> is_on;
inline bool on() {
    return is_on.load(std::memory_order_relaxed);
}

// Begins a trace if OFFPATH_TRACE names a directory; `about.directory` is set here. OFFPATH_TRACE_BYTES
// limits the file. Returns ok if there is nothing to trace, or the trace has begun already. Throws
// std::invalid_argument for a limit that cannot be read.
Status open_from_environment(About about, std::string& problem);

// The number of a name in this trace. Not for the fast path.
std::uint16_t number_of(std::string_view text);

// A name whose number is looked up once. `text` must outlive it; make it a constinit variable.
class Name {
  public:
    explicit constexpr Name(const char* text) : text_(text) {}
    std::uint16_t number() {
        const std::uint16_t known = number_.load(std::memory_order_relaxed);
        return known != UINT16_MAX ? known : look_up();
    }

  private:
    std::uint16_t look_up();

    const char* const text_;
    std::atomic<std::uint16_t> number_{UINT16_MAX};
};

// Writes a record. Call it while on().
void put(Kind kind, Phase phase, std::uint64_t time_ns, std::uint64_t id, std::uint64_t bytes,
         std::uint32_t other, std::uint16_t what);
// The same, with the present time.
void put_now(Kind kind, Phase phase, std::uint64_t id, std::uint64_t bytes, std::uint32_t other,
             std::uint16_t what);
// Writes the begin and the end of a poll that finds nothing or something. Polls of one kind that follow each
// other closely become one, whose end counts them.
void put_poll(std::uint64_t began_ns, std::uint16_t what);

inline void begin(Kind kind, std::uint64_t id = 0, std::uint64_t bytes = 0, std::uint32_t other = 0,
                  std::uint16_t what = 0) {
    if (on()) [[unlikely]]
        put_now(kind, Phase::begin, id, bytes, other, what);
}
inline void end(Kind kind, std::uint64_t id = 0, std::uint64_t bytes = 0) {
    if (on()) [[unlikely]]
        put_now(kind, Phase::end, id, bytes, 0, 0);
}
inline void instant(Kind kind, std::uint64_t id = 0, std::uint64_t bytes = 0, std::uint32_t other = 0,
                    std::uint16_t what = 0) {
    if (on()) [[unlikely]]
        put_now(kind, Phase::instant, id, bytes, other, what);
}

// What happens while it lives. It is traced whole or not at all.
class Span {
  public:
    explicit Span(Kind kind, std::uint64_t bytes = 0) : kind_(kind), traced_(on()) {
        if (traced_) [[unlikely]]
            put_now(kind, Phase::begin, 0, bytes, 0, 0);
    }
    ~Span() {
        if (traced_) [[unlikely]]
            put_now(kind_, Phase::end, 0, 0, 0, 0);
    }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

  private:
    const Kind kind_;
    const bool traced_;
};

// Names one start of a schedule, the same in the rank's process and in its device's. Never 0.
std::uint64_t id_of_start(std::uint64_t team, std::uint32_t rank, std::uint32_t sequence);
// A number for other operations of this process. Never 0.
std::uint64_t new_id();

}  // namespace offpath::trace
