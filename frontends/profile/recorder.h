// Recorder: what the profiler keeps of one rank: the kinds of calls, their sequence, the requests that are
// outstanding, the communicators, and when the rank arrived at collectives. docs/advise.md describes the file
// that write() makes.
//
// Ownership: one Recorder a process. Threads: the one that initialised MPI; calls of others are not recorded.
// Memory is bounded by the limits below.
#pragma once

#include "profile/sequence.h"

#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace offpath::profile {

// One kind of call: calls are alike if all of this is.
struct CallKind {
    const char* name = "";       // without MPI_
    const void* site = nullptr;  // where the program called
    std::uint32_t comm = 0;      // number in the file; 0: none
    std::uint32_t window = 0;    // likewise
    std::int32_t peer = -3;      // -1: any source, -2: MPI_PROC_NULL, -3: none; root or target
    std::int32_t tag = -3;       // -1: any
    std::uint64_t bytes = 0;
    // The receiving half of MPI_Sendrecv.
    std::int32_t other_peer = -3, other_tag = -3;
    std::uint64_t other_bytes = 0;
    // Completions: how many posts ago each request was posted. Vector collectives: bytes of each rank.
    std::span<const std::uint64_t> list;
};

// A blocking message, or two in MPI_Sendrecv, in the program's words.
struct Message {
    struct Half {
        int count = 0;
        MPI_Datatype type = MPI_DATATYPE_NULL;
        int peer = 0, tag = 0;
        bool operator==(const Half&) const = default;
    };
    const char* name = nullptr;  // without MPI_
    const void* site = nullptr;
    MPI_Comm comm = MPI_COMM_NULL;
    Half half, received;
};

// How long non-blocking operations of one kind were outstanding.
struct OutstandingTime {
    std::uint64_t count = 0, compute = 0, waited = 0;
};

class Recorder {
  public:
    static constexpr std::size_t most_kinds = 50'000, most_arrivals = 32'768;

    // Loops of short calls. Reading the clock costs more than they may wait for, so some iterations of such a
    // loop go by without: their times are those of the whole, spread as those of the other iterations are.
    // True: this is one of their calls. It is counted, and nothing else need be recorded.
    bool repeats(const char* name, const void* site, MPI_Comm comm, const Message::Half& half) {
        const Message* const next = expected_;
        if (next == nullptr || next->site != site || next->half != half || next->comm != comm ||
            next->name != name)
            return false;
        expected_ = next == &rest_.back() ? rest_.data() : next + 1;
        if (--untimed_left_ == 0) expected_ = nullptr;
        return true;
    }
    bool repeats(const char* name, const void* site, MPI_Comm comm, const Message::Half& half,
                 const Message::Half& received) {
        return expected_ != nullptr && expected_->received == received && repeats(name, site, comm, half);
    }
    // Handles that messages name may mean something else from now on.
    void repeat_no_more() { expected_ = nullptr; }
    // The program's time outside MPI ends, or begins again. Between them the host's call runs.
    void enter();
    // `kind.list` is copied. Returns the number of the kind.
    std::uint32_t leave(const CallKind& kind, const Message* message = nullptr);
    // The same for a collective of `kind.comm`; also notes when the rank arrived.
    std::uint32_t leave_collective(const CallKind& kind);
    // The call was a test that found nothing.
    void leave_in_vain();
    void leave_unrecorded();

    // After leave() of the call that posted.
    void posted(MPI_Request request, std::uint32_t kind);
    void posted_nothing() { ++posts_; }
    void persistent(MPI_Request request, const CallKind& kind);
    const CallKind* persistent_kind(MPI_Request request) const;
    // Before the host's call, which may null the handle. 0: not one that posted() has seen.
    // How many posts ago; 1: the last one.
    std::uint64_t posts_ago(MPI_Request request) const;
    // The operation is complete; `waited` ticks were spent waiting for it.
    void completed(MPI_Request request, std::uint64_t waited);
    void forget(MPI_Request request) { persistent_.erase(request); }

    std::uint32_t communicator(MPI_Comm comm);
    void communicator_made(MPI_Comm comm);
    void communicator_freed(MPI_Comm comm);
    // Windows of one communicator that follow each other have one number, so loops that make them are found.
    std::uint32_t window(MPI_Win win) const;
    // `allocated`: MPI has allocated its memory.
    void window_made(MPI_Win win, MPI_Comm comm, std::uint64_t bytes, bool allocated);
    void window_freed(MPI_Win win);
    std::uint64_t last_inside() const { return inside_; }

    void begin();
    void write(const char* folder);

  private:
    struct Kind {
        CallKind kind;
        std::vector<std::uint64_t> list;
        std::uint64_t hash = 0;
        Times lost;  // of calls that the sequence had no room for
        std::uint64_t lost_count = 0;
        OutstandingTime window;
        Message message;  // the last one of this kind
    };
    struct Communicator {
        std::vector<int> members;
        int occurrence = 0;  // among communicators of the same members, in the order of their creation
        int rank = 0;
        std::uint64_t collectives = 0;
    };
    struct Window {
        std::uint32_t comm = 0;
        std::uint64_t bytes = 0;  // the most that this rank exposed
        bool allocated = false;   // always
        MPI_Win handle = MPI_WIN_NULL;
    };
    struct Outstanding {
        MPI_Request request{};
        std::uint64_t post = 0, compute = 0;
        std::uint32_t kind = 0;
        bool used = false;
    };
    struct Arrival {
        std::uint32_t comm, kind;
        std::uint64_t number, entered, inside;
    };

    std::uint32_t number_of(const CallKind& kind);
    void rest_if_useful();
    void end_rest();
    double part_that_ran(double elapsed, double expected);
    void add_compute(std::uint64_t ticks);
    void note_arrival(std::uint32_t number);
    std::size_t slot_of(MPI_Request request) const;
    void grow();
    void write_file(std::FILE* file, double end_s, double offset_end_s) const;
    void write_calls(std::FILE* file) const;
    void write_communicators(std::FILE* file) const;
    void write_windows(std::FILE* file) const;
    void write_arrivals(std::FILE* file) const;
    void write_nodes(std::FILE* file, const std::vector<Node>& nodes) const;
    double seconds(std::uint64_t ticks) const { return static_cast<double>(ticks) * seconds_per_tick_; }

    Sequence sequence_;
    std::vector<Kind> kinds_;
    std::vector<std::uint32_t> table_;  // of kinds, by hash; 0: free, else number + 1
    std::uint32_t last_kind_ = 0;
    std::vector<std::uint32_t> after_;  // the kind that followed each kind the last time
    std::unordered_map<MPI_Comm, std::uint32_t> communicators_;
    std::vector<Communicator> known_;
    std::vector<Window> windows_;
    MPI_Comm last_comm_ = MPI_COMM_NULL;
    std::uint32_t last_comm_number_ = 0;
    std::vector<Outstanding> outstanding_;
    std::size_t outstanding_count_ = 0;
    std::unordered_map<MPI_Request, CallKind> persistent_;
    std::vector<Arrival> arrivals_;
    std::uint64_t arrival_stride_ = 1;

    std::uint64_t entered_ = 0, left_ = 0, compute_ = 0, inside_ = 0, tests_ = 0;
    std::uint64_t total_compute_ = 0, posts_ = 0;
    std::uint64_t polled_ = 0;  // inside tests that found nothing
    bool resting_ = false;
    std::vector<Message> rest_;  // the calls of the loop
    const Message* expected_ = nullptr;
    std::size_t untimed_ = 0, untimed_left_ = 0;  // calls of the rest, and those to come
    std::uint64_t rest_from_ = 0;                 // iterations with times
    double rested_ = 0, surplus_ = 0;             // ticks: of all rests, and beyond what was expected
    // Readings of the thread's CPU time, beside that of the clock.
    struct Reading {
        std::uint64_t ticks = 0, wall_ns = 0, cpu_ns = 0;
    };
    static Reading read_clocks(std::uint64_t now);
    // Ticks since the last reading in which the thread did not run.
    std::uint64_t preempted(std::uint64_t now);

    Reading reading_;
    std::uint64_t begin_ticks_ = 0, begin_ns_ = 0, begin_cpu_ns_ = 0, preempted_ = 0;
    double cpu_s_ = 0;  // of the process, since the begin
    double seconds_per_tick_ = 1e-9;
    double offset_begin_s_ = 0;  // of rank 0's clock, less that of this rank
};

}  // namespace offpath::profile
