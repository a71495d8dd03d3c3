// One of two daemons dies, that of the rank that the argument names, or is stopped ("stop"), while messages
// are outstanding in both directions. All of them arrive all the same, by the host's MPI. With "late" the
// rank of the stopped daemon computes first, so it notices the loss only after the other one asks it for
// messages. Errors are fatal here. Two ranks, each with a daemon of its own (several_daemons.sh).
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "check.h"
#include "kill_daemon.h"

namespace {

constexpr int waiting = 6, expected = 4;  // messages that wait for their receives, and receives for messages
int rank, other;
MPI_Comm second;      // for wildcards that must not take other messages
MPI_Datatype spread;  // every other int
bool stops = false, late = false;

int ints_of(int tag) {
    return 3000 + 70'000 * (tag % 5);
}

int value(int tag, int from, int i) {
    return tag * 10'000'019 + from * 1'000'003 + i;
}

std::vector<int> content(int tag, int from) {
    std::vector<int> ints(static_cast<std::size_t>(ints_of(tag)));
    for (int i = 0; i < ints_of(tag); ++i)
        ints[static_cast<std::size_t>(i)] = value(tag, from, i);
    return ints;
}

// The same with gaps of -1 between the ints.
std::vector<int> spread_out(const std::vector<int>& ints) {
    std::vector<int> wide(2 * ints.size(), -1);
    for (std::size_t i = 0; i < ints.size(); ++i)
        wide[2 * i] = ints[i];
    return wide;
}

void check_message(const std::vector<int>& got, int tag, const char* when) {
    check::that(got == content(tag, other), "{}: the message with tag {} is wrong", when, tag);
}

void check_status(const MPI_Status& status, int tag) {
    int count = -1;
    MPI_Get_count(&status, MPI_INT, &count);
    check::that(status.MPI_SOURCE == other && status.MPI_TAG == tag && count == ints_of(tag),
                "tag {}: the status has source {}, tag {}, {} ints", tag, status.MPI_SOURCE, status.MPI_TAG,
                count);
}

void exchange(int tag) {
    const std::vector<int> out = content(tag, rank);
    std::vector<int> in(out.size(), -1);
    MPI_Sendrecv(out.data(), ints_of(tag), MPI_INT, other, tag, in.data(), ints_of(tag), MPI_INT, other, tag,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check_message(in, tag, "an exchange");
}

class Sends {
  public:
    void start(int tag, MPI_Comm comm, bool spreads) {
        buffers_.push_back(spreads ? spread_out(content(tag, rank)) : content(tag, rank));
        MPI_Request& request = requests_.emplace_back();
        const auto send = tag % 3 == 0 ? MPI_Issend : MPI_Isend;
        send(buffers_.back().data(), ints_of(tag), spreads ? spread : MPI_INT, other, tag, comm, &request);
    }
    void finish() { MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE); }

  private:
    std::vector<std::vector<int>> buffers_;
    std::vector<MPI_Request> requests_;
};

void receive_waiting(int tag) {
    std::vector<int> in(static_cast<std::size_t>(ints_of(tag)), -1);
    MPI_Status status;
    // What must be unpacked cannot be saved from a device that may continue.
    if (tag == 2 && !stops) {
        std::vector<int> wide(2 * in.size(), -1);
        MPI_Recv(wide.data(), ints_of(tag), spread, other, tag, MPI_COMM_WORLD, &status);
        check::that(wide == spread_out(content(tag, other)), "a message into a derived type is wrong");
        return check_status(status, tag);
    }
    if (tag == 4) {
        MPI_Message message;
        MPI_Mprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(in.data(), ints_of(tag), MPI_INT, &message, &status);
    } else if (tag == 5) {
        MPI_Request request;
        MPI_Irecv(in.data(), ints_of(tag), MPI_INT, other, tag, MPI_COMM_WORLD, &request);
        for (int done = 0; done == 0;)
            MPI_Test(&request, &done, &status);
    } else {
        MPI_Recv(in.data(), ints_of(tag), MPI_INT, tag == 3 ? MPI_ANY_SOURCE : other, tag, MPI_COMM_WORLD,
                 &status);
    }
    check_message(in, tag, "a message that waited");
    check_status(status, tag);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int victim = argc > 1 ? std::atoi(argv[1]) : 0;
    late = argc > 2 && std::string_view(argv[2]) == "late";
    stops = late || (argc > 2 && std::string_view(argv[2]) == "stop");
    rank = check::rank_of(MPI_COMM_WORLD);
    other = 1 - rank;
    MPI_Comm_dup(MPI_COMM_WORLD, &second);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spread);
    MPI_Type_commit(&spread);
    for (int tag : {1, 2, 3})
        exchange(tag);

    Sends sends;
    for (int tag = 1; tag <= waiting; ++tag)
        sends.start(tag, MPI_COMM_WORLD, tag == 5 || tag == 2);
    std::vector<std::vector<int>> in(expected);
    std::vector<MPI_Request> requests(expected);
    const auto tag_of = [](int i) { return 11 + i; };
    for (int i = 0; i < expected; ++i) {
        const int tag = tag_of(i);
        auto& buffer = in[static_cast<std::size_t>(i)];
        buffer.assign(static_cast<std::size_t>(ints_of(tag)), -1);
        const bool any = i == expected - 1;
        MPI_Irecv(buffer.data(), ints_of(tag), MPI_INT, any ? MPI_ANY_SOURCE : other, any ? MPI_ANY_TAG : tag,
                  any ? second : MPI_COMM_WORLD, &requests[static_cast<std::size_t>(i)]);
    }
    PMPI_Barrier(MPI_COMM_WORLD);
    const auto start = std::chrono::steady_clock::now();
    if (rank == victim) check::kill_daemon(stops ? SIGSTOP : SIGKILL);
    PMPI_Barrier(MPI_COMM_WORLD);
    if (late && rank == victim) std::this_thread::sleep_for(std::chrono::milliseconds(3200));

    for (int i = 0; i < expected; ++i)
        sends.start(tag_of(i), i == expected - 1 ? second : MPI_COMM_WORLD, i == 1);
    for (int tag = 1; tag <= waiting; ++tag)
        receive_waiting(tag);
    MPI_Waitall(expected, requests.data(), MPI_STATUSES_IGNORE);
    for (int i = 0; i < expected; ++i)
        check_message(in[static_cast<std::size_t>(i)], tag_of(i), "a message that was expected");
    sends.finish();
    for (int tag = 20; tag < 30; ++tag)
        exchange(tag);
    if (stops) {
        for (auto& buffer : in)
            std::fill(buffer.begin(), buffer.end(), 7);
        if (rank == victim) check::kill_daemon(SIGCONT);
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        for (const auto& buffer : in)
            check::that(buffer == std::vector<int>(buffer.size(), 7), "the device wrote when it continued");
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    check::that(took.count() < 30, "all of it took {:.1f} s", took.count());
    MPI_Type_free(&spread);
    MPI_Comm_free(&second);
    return check::finish();
}
