// Departure: how the ranks of a communicator leave a lost device at the same collective, whichever calls the
// program makes.
//
// All ranks number the communicator's collectives that go to the device alike. A rank whose operation there
// has met a loss, or that hears of one, starts no more of them, and reports to all others how many it has
// started. The largest number of all reports is the decision: collectives up to that number are the device's,
// the later ones are the host's.
//
// A rank commits when it has heard from all and its own collectives have ended on the device. It then says
// which of them have given its program nothing and have their data as they were (Vote). From the moment of
// its report on, it keeps results back that the device has delivered. A collective of the device that all
// ranks could start afresh is run again, by messages of the host's MPI (requests/second_runs.h). So is one in
// which no rank forwards data of another one, if some ranks have their result and the rest could start it
// afresh: the rest runs it. If some have a result that is the same for all, and one has kept a copy of it,
// that one gives it to the rest (requests/given_results.h). The others end with an error. The decision holds
// once all have committed.
//
// A rank may sit in the host's MPI and not answer, while another one needs its answer to get there. So a rank
// that waits in vain gives its collective up: it tells the others that all collectives up to that number are
// lost, whatever else is reported. It may do so for collectives of the device at any time, and for later ones
// until it commits. Until a rank reports, no other one can commit. A rank that has reported and not committed
// must not sit in a collective of the host's with a collective held back.
//
// No call that only starts a collective waits for the decision: until it comes, collectives are held back
// (requests/held_calls.h). A blocking one waits, as it may wait for all ranks anyway. Letters are answered in
// every intercepted call that tests, probes, or starts a collective, and in waits that do not sit in the
// host's MPI.
//
// A rank that has freed the communicator answers that all calls are the device's, since it has made its last,
// and whether it has all results.
// Where a thread of the rank is still making the communicator, while another rank is done with that and has
// met a loss, the letter waits. Each rank numbers the communicators that it makes, and a letter names the
// receiver's number, so the receiver can tell the two cases apart.
//
// Ranks may start persistent collectives in different orders. So each of these has a departure of its own,
// which numbers its starts. Letters name it by its place among the communicator's persistent collectives,
// which all ranks make in the same order.
//
// Threads: any. Before the first loss a call costs an atomic increment.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "kept_results.h"
#include "letters.h"

namespace offpath::mpi {

struct Team;

enum class Passage : std::uint8_t {
    device,
    undecided,  // hold it back
    lost,       // the device's, which is lost
    again,      // the device's, and all ranks run it again
    host,
};

// What helps if some ranks have their result of a collective.
struct Repair {
    bool direct = false;  // each rank exchanges data with others without forwarding: the rest runs again
    bool given = false;   // all have the same result: one gives it
};

// Exists while this rank makes a communicator: from before any rank can know the number until after the
// Departure, if any, has been made. Letters for the communicator wait meanwhile.
class CommunicatorInTheMaking {
  public:
    CommunicatorInTheMaking();
    ~CommunicatorInTheMaking();
    CommunicatorInTheMaking(const CommunicatorInTheMaking&) = delete;
    CommunicatorInTheMaking& operator=(const CommunicatorInTheMaking&) = delete;
    // This rank's number of it, unique at this rank. The first one is 0.
    std::uint32_t number() const { return number_; }

  private:
    const std::uint32_t number_;
};

class Departure {
  public:
    struct Member {
        int rank;              // in the world
        std::uint32_t number;  // that rank's number of the communicator
    };
    // Serves the communicator that has this number here. It answers letters until close().
    Departure(std::uint32_t number, std::vector<Member> members);
    // Serves a persistent collective of the communicator that `of` serves. The first one has number 1.
    Departure(const Departure& of, std::uint32_t persistent);
    ~Departure();
    Departure(const Departure&) = delete;
    Departure& operator=(const Departure&) = delete;
    // The communicator's record, which owns it. Null for a persistent collective.
    void serve(const Team& team) { team_ = &team; }
    const Team* team() const { return team_; }
    // Of its collectives, as this rank has them.
    KeptResults& kept() { return kept_; }
    const KeptResults& kept() const { return kept_; }
    // `all_ended`: the collectives that it serves have ended on this rank.
    void close(bool all_ended);

    // This rank knows of a loss.
    void report();
    bool has_reported() const;
    bool is_closed() const;
    // All calls up to this one end with an error, on all ranks that have no result of them. Once this rank
    // has committed, so do all calls of the device; false: this call is not one of them, and it is too late.
    bool give_up(std::uint64_t number);
    // Counts a call that would go to the device, and returns its number.
    std::uint64_t next();
    Passage passage_of(std::uint64_t number, Repair repair) const;
    // The rank of the world that gives the others its copy of the call's result. Negative: there is no
    // decision, or no rank does.
    int giver_of(std::uint64_t number) const;
    // Whether there is a decision, and this rank of the world has its result of the call. Of a direct one,
    // all others then have what it has sent, unless that was small.
    bool has_result(std::uint64_t number, int world_rank) const;
    // A call has ended here with another error than a loss.
    void has_failed();
    // Whether there is a decision, and all ranks have started this call on the device.
    bool all_have_started(std::uint64_t number) const;
    // Whether this rank has reported, and has heard of no decision.
    bool is_undecided() const;
    // Why a call of the device was lost: ranks in the world.
    struct Refusals {
        std::vector<int> not_intact;  // could not start it afresh, or have its result
        std::vector<int> gave_up;     // have waited in vain for others
        std::vector<int> silent;      // were not heard of
    };
    Refusals refusals_of(std::uint64_t number, Repair repair) const;
    // Whether some call was given up, as far as this rank knows.
    bool has_given_up() const;

    struct State;

  private:
    std::shared_ptr<State> state_;
    const Team* team_ = nullptr;
    KeptResults kept_;
};

// Which of its first `calls` collectives the rank could start afresh, except those up to `given_up`. False:
// some have not ended on the device. Defined in requests/offloaded_requests.cpp, for there are the
// collectives.
bool find_vote(const Departure& departure, std::uint64_t calls, std::uint64_t given_up, Vote& vote);

// There is a decision: sends the copies of results that this rank is to give to others. Defined there, too.
// Called with a mutex held: it must call no more here than giver_of() and has_result().
void give_results(const Departure& departure);

// Communicators that this rank has reported and that are not decided. While there are some, this rank counts
// as one that has operations outstanding, so that it answers in its waits.
inline std::atomic<std::uint32_t> undecided_departures{0};
// Commits where the time has come. Never blocks.
void commit_departures();

// Answers letters that have come. Returns whether it has let the host's MPI progress.
bool answer_letters();
// The same where a letter is known to have come; otherwise it costs a load.
inline void poll_letters() {
    if (has_letter()) answer_letters();
}

}  // namespace offpath::mpi
