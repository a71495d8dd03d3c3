// What the traced calls share. Each call of MPI writes when it was entered and left, its bytes and its peer,
// and calls the next library of the process that has it: the front end's, or MPI itself. Calls that MPI makes
// inside of calls lie within theirs. Threads: any.
#pragma once

#include "base/clock.h"
#include "trace/trace.h"

#include <mpi.h>

#include <cstdint>

namespace offpath::traced {

// The function that would have been called without this library. Ends the process if there is none.
void* next(const char* name);

// A call's number in the trace. The generated code names the calls in this order.
inline std::uint16_t first_call = 0;
inline std::uint16_t number_of(std::uint16_t call) {
    return static_cast<std::uint16_t>(first_call + call);
}
// The names of all traced calls.
extern const char* const call_names[];
extern const std::uint16_t call_count;

constexpr std::uint32_t nobody = UINT32_MAX;

// Lives during a call. `call` is its place in call_names.
class Scope {
  public:
    explicit Scope(std::uint16_t call) : call_(call), traced_(trace::on()) {
        if (traced_) trace::begin(trace::Kind::call, 0, 0, 0, number_of(call));
    }
    ~Scope() {
        if (traced_)
            trace::put(trace::Kind::call, trace::Phase::end, now_ns(), 0, bytes, peer, number_of(call_));
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    explicit operator bool() const { return traced_; }

    std::uint64_t bytes = 0;
    std::uint32_t peer = nobody;

  private:
    const std::uint16_t call_;
    const bool traced_;
};

// The same for calls that a program makes again and again until something has happened.
class PollScope {
  public:
    explicit PollScope(std::uint16_t call) : call_(call), began_ns_(trace::on() ? now_ns() : 0) {}
    ~PollScope() {
        if (began_ns_ != 0) trace::put_poll(began_ns_, number_of(call_));
    }
    PollScope(const PollScope&) = delete;
    PollScope& operator=(const PollScope&) = delete;

  private:
    const std::uint16_t call_;
    const std::uint64_t began_ns_;
};

std::uint64_t bytes_of(std::int64_t count, MPI_Datatype type);
// Of the blocks of all ranks.
std::uint64_t bytes_of_all(MPI_Comm comm, const int* counts, MPI_Datatype type);
inline std::uint32_t peer_of(int rank) {
    return rank >= 0 ? static_cast<std::uint32_t>(rank) : nobody;
}

}  // namespace offpath::traced
