// Large messages that ranks only wait for go through the host's MPI after the first few, and through the
// device again when one of the two programs computes beside them. Matching and data are right in every case.
// Ranks work in pairs, an even one with the next. The switch-over is 4096 bytes (CMakeLists.txt).
//   p2p_waits_test [SEED]
#include <cstdlib>
#include <cstring>
#include <utility>

#include "p2p_waits_mixture.h"

namespace {

using namespace p2p_waits_test;

constexpr int large = 300000, header = 61;
constexpr int tag = 7;
// After how many messages a habit settles: at first, after it was broken, and after it was broken often. One
// is added, because a message may cross the receiver's notice.
constexpr int soon = 2 + 1, later = 4 + 1, much_later = 40;

// Returns when both ranks of the pair have come here.
void meet() {
    PMPI_Sendrecv(nullptr, 0, MPI_BYTE, other, 1, nullptr, 0, MPI_BYTE, other, 1, MPI_COMM_WORLD,
                  MPI_STATUS_IGNORE);
}

// Returns the length that the next message has for the host's MPI.
int next_is(int its_tag) {
    MPI_Status status;
    int bytes = -1;
    PMPI_Probe(other, its_tag, MPI_COMM_WORLD, &status);
    PMPI_Get_count(&status, MPI_BYTE, &bytes);
    return bytes;
}

void receive(int serial, int its_tag, const char* where) {
    Bytes in(large + 5, 9);
    MPI_Status status;
    int bytes = -1;
    MPI_Recv(in.data(), large + 5, MPI_BYTE, other, its_tag, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    in.resize(large);
    check::that(bytes == large && status.MPI_SOURCE == other && status.MPI_TAG == its_tag,
                "{}: {} bytes from {}", where, bytes, status.MPI_SOURCE);
    check::that(in == filled(large, serial), "{}: message {} is wrong", where, serial);
}

// The even rank sends messages, by blocking calls on both sides. Returns how many came with a header.
int one_way(int count, int its_tag, const char* where) {
    int headers = 0;
    for (int i = 0; i < count; ++i) {
        if (even) {
            MPI_Send(filled(large, i).data(), large, MPI_BYTE, other, its_tag, MPI_COMM_WORLD);
            meet();
            continue;
        }
        headers += next_is(its_tag) == header ? 1 : 0;
        receive(i, its_tag, where);
        meet();
    }
    return headers;
}

void settles() {
    const int headers = one_way(soon + 10, tag, "settling");
    if (even) return;
    check::that(headers >= 2 && headers <= soon, "{} headers before messages go by the host", headers);
}

// Returns whether the message arrives while its receiver only looks at its memory.
bool arrives(int serial, int its_tag, double patience) {
    Bytes in(large, 0);
    MPI_Request request;
    Bytes out = filled(large, serial);
    out.back() = 1;
    if (even) {
        meet();
        MPI_Send(out.data(), large, MPI_BYTE, other, its_tag, MPI_COMM_WORLD);
        return true;
    }
    MPI_Irecv(in.data(), large, MPI_BYTE, other, its_tag, MPI_COMM_WORLD, &request);
    meet();
    compute(0.0005);  // counts as computing, however soon the message arrives
    const volatile char* last = in.data() + large - 1;
    for (const double until = now() + patience; *last == 0 && now() < until;) {
    }
    const bool there = *last == 1;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check::that(in == out, "a message to a receiver that computes is wrong");
    return there;
}

void receiver_computes() {
    one_way(soon + 3, tag + 1, "before computing");
    for (int i = 0; i < 2; ++i)
        arrives(i, tag + 1, 0.005);
    for (int i = 0; i < 3; ++i)
        check::that(arrives(i, tag + 1, 20), "message {} after a receiver began to compute did not arrive",
                    i);
    const int headers = one_way(later + 4, tag + 1, "after computing");
    if (!even)
        check::that(headers >= 1 && headers <= later, "{} headers after a receiver has computed", headers);
}

void sender_computes() {
    one_way(soon + 3, tag + 2, "before the sender computes");
    for (int i = 0; i < 4; ++i) {
        if (even) {
            const Bytes out = filled(large, i);
            MPI_Request request;
            MPI_Isend(out.data(), large, MPI_BYTE, other, tag + 2, MPI_COMM_WORLD, &request);
            compute(0.002);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            const int bytes = next_is(tag + 2);
            check::that(i < 1 || bytes == header, "message {} after a sender began to compute has {} bytes",
                        i, bytes);
            receive(i, tag + 2, "a sender that computes");
        }
        meet();
    }
}

// With several outstanding messages, both ways are tried. The order and the later choice depend on their
// times: a rank that loses its core seems slow, or to compute (mpi_waiting_habit_test has both on a clock of
// its own).
void several() {
    one_way(soon + 3, tag + 3, "before several");
    int by_device = 0, by_host = 0;
    for (int round = 0; round < 8; ++round) {
        constexpr std::size_t many = 4;
        std::vector<Bytes> data;
        std::vector<MPI_Request> requests(many);
        for (std::size_t i = 0; i < many; ++i)
            data.push_back(even ? filled(large, static_cast<int>(i)) : Bytes(large));
        if (even) {
            for (std::size_t i = 0; i < many; ++i)
                MPI_Isend(data[i].data(), large, MPI_BYTE, other, tag + 3, MPI_COMM_WORLD, &requests[i]);
            MPI_Waitall(many, requests.data(), MPI_STATUSES_IGNORE);
            meet();
            continue;
        }
        ++(next_is(tag + 3) == header ? by_device : by_host);
        for (std::size_t i = 0; i < many; ++i)
            MPI_Irecv(data[i].data(), large, MPI_BYTE, other, tag + 3, MPI_COMM_WORLD, &requests[i]);
        for (std::size_t done = 0; done < many; ++done) {
            int index = -1;
            MPI_Waitany(many, requests.data(), &index, MPI_STATUS_IGNORE);
        }
        for (std::size_t i = 0; i < many; ++i)
            check::that(data[i] == filled(large, static_cast<int>(i)), "one of several, {}", i);
        meet();
    }
    if (!even)
        check::that(by_device > 0 && by_host > 0,
                    "several messages went {} times by the device, {} by the host", by_device, by_host);
}

// Many benchmarks use one buffer for all receives. Any of the messages may be in it afterwards, so they are
// equal here, and no header may be lost in it. Soon only the receiver's own memory is used: the sender no
// longer sends headers, even if it computes.
void one_buffer() {
    constexpr std::size_t many = 8;
    constexpr int rounds = 16, agreed = 8;
    const Bytes expected = filled(large, 5);
    for (int round = 0; round < rounds; ++round) {
        if (round % 4 == 0 && round < agreed) one_way(soon + 3, tag + 7, "before one buffer");
        Bytes data = even ? expected : Bytes(large);
        std::vector<MPI_Request> requests(many);
        if (!even && round >= agreed)
            check::that(next_is(tag + 7) == large, "one buffer, round {}: there is a header", round);
        for (MPI_Request& request : requests) {
            if (even) {
                MPI_Isend(data.data(), large, MPI_BYTE, other, tag + 7, MPI_COMM_WORLD, &request);
            } else {
                MPI_Irecv(data.data(), large, MPI_BYTE, other, tag + 7, MPI_COMM_WORLD, &request);
            }
        }
        if (even && round >= agreed) compute(0.001);
        MPI_Waitall(many, requests.data(), MPI_STATUSES_IGNORE);
        check::that(data == expected, "one buffer, round {}", round);
        meet();
    }
}

// Sends of every kind go without a header where this was promised to the receiver. Only a message of a
// header's own length still has one.
void one_buffer_and_other_sends() {
    Bytes attached(large + MPI_BSEND_OVERHEAD);
    const int lengths[] = {large, 61, large};
    if (!even) {
        for (int serial = 0; serial < 3; ++serial) {
            const int length = lengths[serial];
            check::that(next_is(tag + 7) == length, "another send of {} bytes has a header", length);
            Bytes in(large);
            MPI_Status status;
            int bytes = -1;
            MPI_Recv(in.data(), large, MPI_BYTE, other, tag + 7, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_BYTE, &bytes);
            in.resize(static_cast<std::size_t>(length));
            check::that(bytes == length && in == filled(length, serial), "another send of {} bytes", length);
        }
        return;
    }
    MPI_Buffer_attach(attached.data(), static_cast<int>(attached.size()));
    MPI_Bsend(filled(large, 0).data(), large, MPI_BYTE, other, tag + 7, MPI_COMM_WORLD);
    MPI_Send(filled(61, 1).data(), 61, MPI_BYTE, other, tag + 7, MPI_COMM_WORLD);
    MPI_Ssend(filled(large, 2).data(), large, MPI_BYTE, other, tag + 7, MPI_COMM_WORLD);
    void* detached = nullptr;
    int bytes = 0;
    MPI_Buffer_detach(&detached, &bytes);
}

// Both ranks send and receive at once, and wait immediately.
void exchanges() {
    for (int round = 0; round < 20; ++round) {
        const Bytes out = filled(large, round + rank), expected = filled(large, round + other);
        Bytes in(large);
        if (round % 2 == 0) {
            MPI_Sendrecv(out.data(), large, MPI_BYTE, other, tag + 6, in.data(), large, MPI_BYTE, other,
                         tag + 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Request requests[2];
            MPI_Irecv(in.data(), large, MPI_BYTE, other, tag + 6, MPI_COMM_WORLD, &requests[0]);
            MPI_Isend(out.data(), large, MPI_BYTE, other, tag + 6, MPI_COMM_WORLD, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        }
        check::that(in == expected, "exchange {}", round);
    }
}

// The device was asked for receives, but their messages come by the host's MPI. They have all lengths, some
// are too long, and one receive is cancelled.
void early_ones_meet_the_host() {
    const int lengths[] = {large, 100, large, 5000, large, 61, large, 0, 4096, large};
    constexpr int count = 10;
    for (int round = 0; round < 3; ++round) {
        one_way(round == 0 ? soon + 3 : much_later, tag + 4, "before early ones");
        if (even) {
            meet();
            for (int i = 0; i < count; ++i)
                MPI_Send(filled(lengths[i], i).data(), lengths[i], MPI_BYTE, other, tag + 4, MPI_COMM_WORLD);
            meet();
            continue;
        }
        std::vector<Bytes> data(count + 1, Bytes(large));
        std::vector<MPI_Request> requests(count + 1);
        for (std::size_t i = 0; i < requests.size(); ++i) {
            const int room = cuts_off && round == 2 && i == 2 ? large / 2 : large;
            MPI_Irecv(data[i].data(), room, MPI_BYTE, other, tag + 4, MPI_COMM_WORLD, &requests[i]);
        }
        std::vector<MPI_Status> statuses(count + 1);
        std::vector<std::size_t> places;
        for (std::size_t i = 0; i < requests.size(); ++i)
            places.push_back(i);
        if (round == 1) {  // the later receives move up
            MPI_Cancel(&requests[3]);
            MPI_Wait(&requests[3], &statuses[3]);
            places.erase(places.begin() + 3);
        } else {
            MPI_Cancel(&requests[count]);
            MPI_Wait(&requests[count], &statuses[count]);
        }
        meet();
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t at = places[i];
            const int error = MPI_Wait(&requests[at], &statuses[at]);
            const bool too_long = cuts_off && round == 2 && at == 2;
            int its_class = MPI_SUCCESS, bytes = -1;
            MPI_Error_class(error, &its_class);
            check::that(its_class == (too_long ? MPI_ERR_TRUNCATE : MPI_SUCCESS),
                        "early receive {} in round {} ends with {}", i, round, its_class);
            if (too_long) continue;
            MPI_Get_count(&statuses[at], MPI_BYTE, &bytes);
            data[at].resize(static_cast<std::size_t>(lengths[i]));
            check::that(bytes == lengths[i] && data[at] == filled(lengths[i], static_cast<int>(i)),
                        "early receive {} of {} bytes in round {} got {} bytes", i, lengths[i], round, bytes);
        }
        meet();
    }
}

// A receive is posted, and a collective of the host's MPI comes before the wait for it.
void past_a_barrier() {
    one_way(much_later, tag + 5, "before a barrier");
    Bytes in(large);
    MPI_Request request = MPI_REQUEST_NULL;
    if (!even) MPI_Irecv(in.data(), large, MPI_BYTE, other, tag + 5, MPI_COMM_WORLD, &request);
    meet();
    if (even) MPI_Send(filled(large, 4).data(), large, MPI_BYTE, other, tag + 5, MPI_COMM_WORLD);
    meet();
    if (even) return;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check::that(in == filled(large, 4), "a message past a barrier");
}

void mixture() {
    Mixture mixture;
    for (int i = 0; i < 400; ++i)
        mixture.round(i);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    rank = check::rank_of(MPI_COMM_WORLD);
    size = check::size_of(MPI_COMM_WORLD);
    even = rank % 2 == 0;
    other = even ? rank + 1 : rank - 1;
    if (argc > 1) seed = static_cast<unsigned>(std::atoi(argv[1]));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const bool watched = std::getenv("LD_PRELOAD") != nullptr;
    if (other < size) {
        if (watched) {  // the host's MPI alone uses no headers
            settles();
            receiver_computes();
            sender_computes();
            several();
        }
        one_buffer();
        if (watched) one_buffer_and_other_sends();
        exchanges();
        early_ones_meet_the_host();
        past_a_barrier();
        mixture();
    }
    PMPI_Barrier(MPI_COMM_WORLD);
    return check::finish();
}
