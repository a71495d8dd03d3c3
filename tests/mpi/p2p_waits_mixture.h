// A pair of ranks (p2p_waits_test.cpp) and a mixture of all ways to send and to receive.
#pragma once

#include <time.h>

#include <algorithm>
#include <random>
#include <vector>

#include "check.h"

namespace p2p_waits_test {

// Open MPI 4.1 writes past receives within a node that are too short for their message.
#ifdef OPEN_MPI
constexpr bool cuts_off = false;
#else
constexpr bool cuts_off = true;
#endif

inline int rank, size, other;
inline bool even;
inline unsigned seed = 1;

using Bytes = std::vector<char>;

inline Bytes filled(int bytes, int serial) {
    Bytes data(static_cast<std::size_t>(bytes));
    for (std::size_t i = 0; i < data.size(); ++i)
        data[i] = static_cast<char>(i * 31 + i / 256 + static_cast<std::size_t>(serial) * 77);
    return data;
}

inline double now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

inline void compute(double seconds) {
    for (const double until = now() + seconds; now() < until;) {
    }
}

// All ways to send and to receive, also of data with gaps. Some phases only wait, others compute.
class Mixture {
  public:
    Mixture() : random_(seed + static_cast<unsigned>(std::min(rank, other))) {
        MPI_Type_vector(2, 1, 2, MPI_CHAR, &pieces_);
        MPI_Type_create_resized(pieces_, 0, 4, &gaps_);
        MPI_Type_commit(&gaps_);
    }
    ~Mixture() {
        MPI_Type_free(&gaps_);
        MPI_Type_free(&pieces_);
    }
    Mixture(const Mixture&) = delete;
    Mixture& operator=(const Mixture&) = delete;

    void round(int number) {
        if (number % 30 == 0) busy_ = pick(3);
        plan_.clear();
        const int messages = pick(5) == 0 ? 1 + pick(4) : 1;
        const int forth = pick(2);
        for (int i = 0; i < messages; ++i)
            plan_.push_back(
                {pick(8) == 0 ? pick(9000) : 4096 + pick(60) * 5000, pick(6), pick(6), serial_++, pick(2)});
        const bool computes = busy_ == 2 || (busy_ == 1 && pick(10) == 0);
        if (even == (forth == 0)) {
            send(computes && pick(2) == 0);
        } else {
            receive(computes, pick(3) == 0);
        }
        random_.discard(static_cast<unsigned long long>(number) * 7 % 5);
        plan_.clear();
        random_.seed(seed * 7919 + static_cast<unsigned>(number * 31 + std::min(rank, other)));
    }

  private:
    struct One {
        int bytes, send_way, receive_way, serial, gaps;
    };
    static constexpr int its_tag = 30;

    int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }

    static Bytes spread(const Bytes& packed) {
        Bytes wide(packed.size() * 2 + 4, 3);
        for (std::size_t i = 0; i < packed.size(); ++i)
            wide[i / 2 * 4 + i % 2 * 2] = packed[i];
        return wide;
    }

    void send(bool computes) {
        for (One& one : plan_) {
            if (one.bytes % 2 != 0) one.gaps = 0;
            const Bytes packed = filled(one.bytes, one.serial);
            const Bytes wide = spread(packed);
            const void* data = one.gaps != 0 ? wide.data() : packed.data();
            const int count = one.gaps != 0 ? one.bytes / 2 : one.bytes;
            const MPI_Datatype type = one.gaps != 0 ? gaps_ : MPI_BYTE;
            MPI_Request request = MPI_REQUEST_NULL;
            switch (one.send_way) {
                case 0:
                case 1:
                    MPI_Send(data, count, type, other, its_tag, MPI_COMM_WORLD);
                    continue;
                case 2:
                    MPI_Ssend(data, count, type, other, its_tag, MPI_COMM_WORLD);
                    continue;
                case 3:
                    MPI_Isend(data, count, type, other, its_tag, MPI_COMM_WORLD, &request);
                    break;
                case 4:
                    MPI_Issend(data, count, type, other, its_tag, MPI_COMM_WORLD, &request);
                    break;
                default:
                    MPI_Send_init(data, count, type, other, its_tag, MPI_COMM_WORLD, &request);
                    MPI_Start(&request);
            }
            if (computes) compute(0.0005);
            int flag = 0;
            while (one.serial % 2 == 0 && flag == 0)
                MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
        }
    }

    void receive(bool computes, bool all_before) {
        std::vector<Bytes> rooms;
        std::vector<MPI_Request> requests(plan_.size(), MPI_REQUEST_NULL);
        std::vector<MPI_Status> statuses(plan_.size());
        for (One& one : plan_) {
            if (one.bytes % 2 != 0) one.gaps = 0;
            rooms.emplace_back(static_cast<std::size_t>(largest) * 2 + 8, 3);
        }
        for (std::size_t i = 0; i < plan_.size(); ++i) {
            const One& one = plan_[i];
            // The receiver chooses its type alone. This must not affect the sender.
            const bool gaps = one.gaps != 0 && one.receive_way % 2 == 0;
            const MPI_Datatype type = gaps ? gaps_ : MPI_BYTE;
            const int count = gaps ? largest / 2 : largest;
            const int source = one.receive_way == 1 ? MPI_ANY_SOURCE : other;
            MPI_Status& status = statuses[i];
            if (all_before || one.receive_way >= 3) {
                MPI_Irecv(rooms[i].data(), count, type, other, its_tag, MPI_COMM_WORLD, &requests[i]);
                if (all_before) continue;
                if (computes) compute(0.0005);
                int flag = 0, index = -1;
                if (one.receive_way == 4) MPI_Waitany(1, &requests[i], &index, &status);
                while (one.receive_way == 5 && flag == 0)
                    MPI_Testall(1, &requests[i], &flag, &status);
                if (one.receive_way == 3) MPI_Wait(&requests[i], &status);
            } else {
                if (one.receive_way == 2) MPI_Probe(source, its_tag, MPI_COMM_WORLD, &status);
                MPI_Recv(rooms[i].data(), count, type, source, its_tag, MPI_COMM_WORLD, &status);
            }
        }
        if (all_before && computes) compute(0.001);
        if (all_before) MPI_Waitall(static_cast<int>(requests.size()), requests.data(), statuses.data());
        for (std::size_t i = 0; i < plan_.size(); ++i)
            verify(plan_[i], rooms[i], statuses[i]);
    }

    static void verify(const One& one, Bytes& room, const MPI_Status& status) {
        const bool gaps = one.gaps != 0 && one.receive_way % 2 == 0;
        int elements = -1;
        MPI_Get_elements(&status, MPI_BYTE, &elements);
        const int chars = elements;
        const Bytes packed = filled(one.bytes, one.serial);
        const Bytes expected = gaps ? spread(packed) : packed;
        room.resize(expected.size());
        check::that(chars == one.bytes && status.MPI_SOURCE == other && status.MPI_TAG == its_tag,
                    "mixture, seed {}: message {} of {} bytes has a status of {} bytes", seed, one.serial,
                    one.bytes, chars);
        check::that(room == expected, "mixture, seed {}: message {} of {} bytes, ways {} and {}, is wrong",
                    seed, one.serial, one.bytes, one.send_way, one.receive_way);
    }

    static constexpr int largest = 4096 + 60 * 5000;

    std::mt19937 random_;
    MPI_Datatype pieces_ = MPI_DATATYPE_NULL, gaps_ = MPI_DATATYPE_NULL;
    std::vector<One> plan_;
    int serial_ = 0, busy_ = 0;
};

}  // namespace p2p_waits_test
