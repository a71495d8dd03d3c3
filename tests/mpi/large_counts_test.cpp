// The calls of MPI 4 with large counts, against their forms with an int on the other ranks, and
// MPI_Isendrecv. Skipped if the MPI does not have them. With the argument `huge`: messages of more elements
// than an int can count (two ranks, 12 GiB). With `huge-window`: puts of as many elements with gaps (two
// ranks, 16 GiB). The switch-over is 4096 bytes (CMakeLists.txt).
#include <algorithm>
#include <cstring>
#include <numeric>

#include "check.h"

#if MPI_VERSION < 4

int main() {
    std::puts("skipped: this MPI has no large counts");
    return 77;
}

#else

namespace {

constexpr int large = 200000;
const int every_size[] = {0, 8, 61, 100, 4095, 4096, 5000, large};

int rank, size, next, previous;
bool wide;  // whether this rank uses the calls with large counts

std::vector<char> filled(int bytes, int seed) {
    std::vector<char> data(static_cast<std::size_t>(bytes));
    for (std::size_t i = 0; i < data.size(); ++i)
        data[i] = static_cast<char>(i * 31 + i / 256 + static_cast<std::size_t>(seed) * 77);
    return data;
}

void check_message(const std::vector<char>& in, int bytes, const MPI_Status& status, int tag,
                   const char* how) {
    MPI_Count count = -1;
    MPI_Get_count_c(&status, MPI_BYTE, &count);
    check::that(status.MPI_SOURCE == previous && status.MPI_TAG == tag && count == bytes,
                "{}: status has source {}, tag {}, {} bytes; {}, {}, {} were expected", how,
                status.MPI_SOURCE, status.MPI_TAG, count, previous, tag, bytes);
    check::that(std::equal(in.begin(), in.begin() + bytes, filled(bytes, previous).begin()), "{} of {} bytes",
                how, bytes);
}

// The two ends of a message use different calls, because neighbours differ in `wide`.
void messages() {
    std::vector<char> attached(large + MPI_BSEND_OVERHEAD + 1000);
    MPI_Buffer_attach(attached.data(), static_cast<int>(attached.size()));
    for (int bytes : every_size) {
        const std::vector<char> out = filled(bytes, rank);
        std::vector<char> in(large);
        MPI_Request requests[2];
        MPI_Status status;
        const auto receive = [&](int tag, const char* how) {
            in.assign(in.size(), 9);
            if (wide) {
                MPI_Recv_c(in.data(), large, MPI_BYTE, previous, tag, MPI_COMM_WORLD, &status);
            } else {
                MPI_Recv(in.data(), large, MPI_BYTE, previous, tag, MPI_COMM_WORLD, &status);
            }
            check_message(in, bytes, status, tag, how);
        };
        if (wide) {
            MPI_Isend_c(out.data(), bytes, MPI_BYTE, next, 1, MPI_COMM_WORLD, &requests[0]);
            MPI_Issend_c(out.data(), bytes, MPI_BYTE, next, 2, MPI_COMM_WORLD, &requests[1]);
            MPI_Bsend_c(out.data(), bytes, MPI_BYTE, next, 3, MPI_COMM_WORLD);
        } else {
            MPI_Isend(out.data(), bytes, MPI_BYTE, next, 1, MPI_COMM_WORLD, &requests[0]);
            MPI_Issend(out.data(), bytes, MPI_BYTE, next, 2, MPI_COMM_WORLD, &requests[1]);
            MPI_Bsend(out.data(), bytes, MPI_BYTE, next, 3, MPI_COMM_WORLD);
        }
        receive(1, "isend");
        receive(2, "issend");
        receive(3, "bsend");
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);

        if (wide) {
            MPI_Irecv_c(in.data(), large, MPI_BYTE, previous, 4, MPI_COMM_WORLD, &requests[0]);
            MPI_Ssend_c(out.data(), bytes, MPI_BYTE, next, 4, MPI_COMM_WORLD);
        } else {
            MPI_Irecv(in.data(), large, MPI_BYTE, previous, 4, MPI_COMM_WORLD, &requests[0]);
            MPI_Send(out.data(), bytes, MPI_BYTE, next, 4, MPI_COMM_WORLD);
        }
        MPI_Wait(&requests[0], &status);
        check_message(in, bytes, status, 4, "irecv");

        if (wide) {
            MPI_Sendrecv_c(out.data(), bytes, MPI_BYTE, next, 5, in.data(), large, MPI_BYTE, previous, 5,
                           MPI_COMM_WORLD, &status);
        } else {
            MPI_Sendrecv(out.data(), bytes, MPI_BYTE, next, 5, in.data(), large, MPI_BYTE, previous, 5,
                         MPI_COMM_WORLD, &status);
        }
        check_message(in, bytes, status, 5, "sendrecv");
        std::vector<char> both = out;
        if (wide) {
            MPI_Sendrecv_replace_c(both.data(), bytes, MPI_BYTE, next, 6, previous, 6, MPI_COMM_WORLD,
                                   &status);
        } else {
            MPI_Sendrecv_replace(both.data(), bytes, MPI_BYTE, next, 6, previous, 6, MPI_COMM_WORLD, &status);
        }
        check_message(both, bytes, status, 6, "sendrecv_replace");

        MPI_Message message;
        MPI_Isend(out.data(), bytes, MPI_BYTE, next, 7, MPI_COMM_WORLD, &requests[0]);
        MPI_Mprobe(previous, 7, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv_c(in.data(), large, MPI_BYTE, &message, &status);
        check_message(in, bytes, status, 7, "mrecv");
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        MPI_Isend_c(out.data(), bytes, MPI_BYTE, next, 8, MPI_COMM_WORLD, &requests[0]);
        MPI_Mprobe(previous, 8, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Imrecv_c(in.data(), large, MPI_BYTE, &message, &requests[1]);
        MPI_Wait(&requests[1], &status);
        check_message(in, bytes, status, 8, "imrecv");
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);

        MPI_Recv_init_c(in.data(), large, MPI_BYTE, previous, 9, MPI_COMM_WORLD, &requests[0]);
        MPI_Send_init_c(out.data(), bytes, MPI_BYTE, next, 9, MPI_COMM_WORLD, &requests[1]);
        for (int i = 0; i < 2; ++i) {
            MPI_Status statuses[2];
            in.assign(in.size(), 9);
            MPI_Startall(2, requests);
            MPI_Waitall(2, requests, statuses);
            check_message(in, bytes, statuses[0], 9, "recv_init");
        }
        MPI_Request_free(&requests[0]);
        MPI_Request_free(&requests[1]);
    }
    void* address = nullptr;
    int bytes = 0;
    MPI_Buffer_detach(&address, &bytes);
}

// A receive and a send share one request. It is waited for and tested, alone and among others.
void isendrecv() {
    MPI_Datatype gaps;
    PMPI_Type_vector(1, 3, 5, MPI_CHAR, &gaps);
    MPI_Datatype spread;
    PMPI_Type_create_resized(gaps, 0, 5, &spread);
    PMPI_Type_commit(&spread);
    for (int bytes : every_size) {
        const std::vector<char> out = filled(bytes, rank);
        std::vector<char> in(large, 9), both = out;
        MPI_Request requests[3];
        MPI_Status statuses[3];
        MPI_Isendrecv(out.data(), bytes, MPI_BYTE, next, 11, in.data(), large, MPI_BYTE, MPI_ANY_SOURCE, 11,
                      MPI_COMM_WORLD, &requests[0]);
        MPI_Wait(&requests[0], &statuses[0]);
        check_message(in, bytes, statuses[0], 11, "isendrecv");

        in.assign(in.size(), 9);
        MPI_Isendrecv_c(out.data(), bytes, MPI_BYTE, next, 12, in.data(), large, MPI_BYTE, previous, 12,
                        MPI_COMM_WORLD, &requests[0]);
        MPI_Isendrecv_replace(both.data(), bytes, MPI_BYTE, next, 13, previous, 13, MPI_COMM_WORLD,
                              &requests[1]);
        MPI_Ibarrier(MPI_COMM_WORLD, &requests[2]);
        MPI_Waitall(3, requests, statuses);
        check_message(in, bytes, statuses[0], 12, "isendrecv_c");
        check_message(both, bytes, statuses[1], 13, "isendrecv_replace");

        std::vector<char> spread_out = filled(bytes * 5, rank);
        const std::vector<char> before = spread_out, expected = filled(bytes * 5, previous);
        MPI_Isendrecv_replace_c(spread_out.data(), bytes, spread, next, 14, previous, 14, MPI_COMM_WORLD,
                                &requests[0]);
        for (int flag = 0; flag == 0;)
            MPI_Test(&requests[0], &flag, &statuses[0]);
        bool good = true;
        for (std::size_t i = 0; i < spread_out.size(); ++i)
            good = good && spread_out[i] == (i % 5 < 3 ? expected[i] : before[i]);
        check::that(good, "isendrecv_replace of {} elements with gaps", bytes);
    }
    // Messages to and from MPI_PROC_NULL, and in one direction only.
    std::vector<char> in(large, 9);
    const std::vector<char> out = filled(large, rank);
    MPI_Request request;
    MPI_Status status;
    const int to = rank == 0 ? MPI_PROC_NULL : rank - 1;
    const int from = rank == size - 1 ? MPI_PROC_NULL : rank + 1;
    MPI_Isendrecv(out.data(), large, MPI_BYTE, to, 15, in.data(), large, MPI_BYTE, from, 15, MPI_COMM_WORLD,
                  &request);
    MPI_Wait(&request, &status);
    // For a receive from MPI_PROC_NULL, MPICH 4.0 reports rank 0 as the source.
    check::that(from == MPI_PROC_NULL || (status.MPI_SOURCE == from && in == filled(large, from)),
                "isendrecv along a line: source {}", status.MPI_SOURCE);
    // A receive that is too short returns an error.
    int error = MPI_SUCCESS;
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Isendrecv(out.data(), large, MPI_BYTE, next, 16, in.data(), large / 2, MPI_BYTE, previous, 16,
                  MPI_COMM_WORLD, &request);
    PMPI_Error_class(MPI_Wait(&request, &status), &error);
    check::that(error == MPI_ERR_TRUNCATE, "isendrecv into too little room: error class {}", error);
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Type_free(&gaps);
    MPI_Type_free(&spread);
}

void collectives() {
    for (const int n : {10, 3000}) {
        const auto each = static_cast<std::size_t>(n), all = each * static_cast<std::size_t>(size);
        const std::vector<int> out = check::pattern(all, 3);
        std::vector<int> in(all), expected(all);
        const auto compare = [&](const char* how) {
            check::that(in == expected, "{} of {} numbers", how, n);
            in.assign(all, 7);
            expected.assign(all, 7);
        };
        const auto done = [](MPI_Request& request) { MPI_Wait(&request, MPI_STATUS_IGNORE); };
        MPI_Request request;
        compare("nothing");

        PMPI_Alltoall(out.data(), n, MPI_INT, expected.data(), n, MPI_INT, MPI_COMM_WORLD);
        if (wide) {
            MPI_Ialltoall_c(out.data(), n, MPI_INT, in.data(), n, MPI_INT, MPI_COMM_WORLD, &request);
        } else {
            MPI_Ialltoall(out.data(), n, MPI_INT, in.data(), n, MPI_INT, MPI_COMM_WORLD, &request);
        }
        done(request);
        compare("ialltoall");

        // Rank r sends i * n / size + r numbers to rank i.
        std::vector<int> send_counts, send_at, recv_counts, recv_at;
        std::vector<MPI_Count> wide_send_counts, wide_recv_counts;
        std::vector<MPI_Aint> wide_send_at, wide_recv_at;
        for (int i = 0; i < size; ++i) {
            send_counts.push_back(std::min(i * n / size + rank, n));
            recv_counts.push_back(std::min(rank * n / size + i, n));
            send_at.push_back((size - 1 - i) * n);
            recv_at.push_back(i * n);
        }
        wide_send_counts.assign(send_counts.begin(), send_counts.end());
        wide_recv_counts.assign(recv_counts.begin(), recv_counts.end());
        wide_send_at.assign(send_at.begin(), send_at.end());
        wide_recv_at.assign(recv_at.begin(), recv_at.end());
        const auto exact = [&] {
            PMPI_Alltoallv(out.data(), send_counts.data(), send_at.data(), MPI_INT, expected.data(),
                           recv_counts.data(), recv_at.data(), MPI_INT, MPI_COMM_WORLD);
        };
        exact();
        if (wide) {
            MPI_Ialltoallv_c(out.data(), wide_send_counts.data(), wide_send_at.data(), MPI_INT, in.data(),
                             wide_recv_counts.data(), wide_recv_at.data(), MPI_INT, MPI_COMM_WORLD, &request);
        } else {
            MPI_Ialltoallv(out.data(), send_counts.data(), send_at.data(), MPI_INT, in.data(),
                           recv_counts.data(), recv_at.data(), MPI_INT, MPI_COMM_WORLD, &request);
        }
        done(request);
        compare("ialltoallv");

        // The program may free the arrays once the persistent request is made.
        if (wide) {
            auto counts = wide_send_counts, counts2 = wide_recv_counts;
            auto places = wide_send_at, places2 = wide_recv_at;
            MPI_Alltoallv_init_c(out.data(), counts.data(), places.data(), MPI_INT, in.data(), counts2.data(),
                                 places2.data(), MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
            for (auto* numbers : {&counts, &counts2})
                numbers->assign(numbers->size(), 1);
            places.assign(places.size(), 0);
            places2.assign(places2.size(), 0);
        } else {
            MPI_Alltoallv_init(out.data(), send_counts.data(), send_at.data(), MPI_INT, in.data(),
                               recv_counts.data(), recv_at.data(), MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL,
                               &request);
        }
        for (int i = 0; i < 2; ++i) {
            exact();
            MPI_Start(&request);
            done(request);
            compare("alltoallv_init");
        }
        MPI_Request_free(&request);

        std::vector<int> own_counts(static_cast<std::size_t>(size), n);
        const std::vector<MPI_Count> wide_counts(own_counts.begin(), own_counts.end());
        PMPI_Allgather(out.data(), n, MPI_INT, expected.data(), n, MPI_INT, MPI_COMM_WORLD);
        if (wide) {
            MPI_Iallgatherv_c(out.data(), n, MPI_INT, in.data(), wide_counts.data(), wide_recv_at.data(),
                              MPI_INT, MPI_COMM_WORLD, &request);
        } else {
            MPI_Iallgatherv(out.data(), n, MPI_INT, in.data(), own_counts.data(), recv_at.data(), MPI_INT,
                            MPI_COMM_WORLD, &request);
        }
        done(request);
        compare("iallgatherv");

        PMPI_Gather(out.data(), n, MPI_INT, expected.data(), n, MPI_INT, 0, MPI_COMM_WORLD);
        if (wide) {
            MPI_Igatherv_c(out.data(), n, MPI_INT, in.data(), wide_counts.data(), wide_recv_at.data(),
                           MPI_INT, 0, MPI_COMM_WORLD, &request);
        } else {
            MPI_Igatherv(out.data(), n, MPI_INT, in.data(), own_counts.data(), recv_at.data(), MPI_INT, 0,
                         MPI_COMM_WORLD, &request);
        }
        done(request);
        compare("igatherv");

        PMPI_Allreduce(out.data(), expected.data(), n, MPI_INT, MPI_BXOR, MPI_COMM_WORLD);
        if (wide) {
            MPI_Iallreduce_c(out.data(), in.data(), n, MPI_INT, MPI_BXOR, MPI_COMM_WORLD, &request);
        } else {
            MPI_Iallreduce(out.data(), in.data(), n, MPI_INT, MPI_BXOR, MPI_COMM_WORLD, &request);
        }
        done(request);
        compare("iallreduce");

        std::copy_n(out.begin(), n, in.begin());
        std::copy_n(out.begin(), n, expected.begin());
        PMPI_Bcast(expected.data(), n, MPI_INT, size - 1, MPI_COMM_WORLD);
        if (wide) {
            MPI_Bcast_c(in.data(), n, MPI_INT, size - 1, MPI_COMM_WORLD);
        } else {
            MPI_Bcast(in.data(), n, MPI_INT, size - 1, MPI_COMM_WORLD);
        }
        compare("bcast");
    }
}

void one_sided() {
    constexpr int n = 3000;
    std::vector<int> memory(n, 1), out = check::pattern(n, 5), in(n);
    MPI_Win win;
    if (wide) {
        MPI_Win_create_c(memory.data(), n * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    } else {
        MPI_Win_create(memory.data(), n * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    }
    MPI_Win_fence(0, win);
    MPI_Put_c(out.data(), n, MPI_INT, next, 0, n, MPI_INT, win);
    MPI_Win_fence(0, win);
    MPI_Accumulate_c(out.data(), n, MPI_INT, next, 0, n, MPI_INT, MPI_BXOR, win);
    MPI_Win_fence(0, win);
    check::that(std::count(memory.begin(), memory.end(), 0) == n, "put_c and accumulate_c");
    PMPI_Barrier(MPI_COMM_WORLD);
    MPI_Put(out.data(), n, MPI_INT, next, 0, n, MPI_INT, win);
    MPI_Win_fence(0, win);
    MPI_Get_c(in.data(), n, MPI_INT, next, 0, n, MPI_INT, win);
    MPI_Win_fence(0, win);
    check::that(in == out, "get_c");
    MPI_Win_free(&win);
}

// Puts `n` elements with gaps, more than one message tells the target's device about, and gets `gets` of them
// back.
void one_sided_with_gaps(MPI_Count n, MPI_Count gets) {
    const auto value = [](MPI_Count i, int from) { return static_cast<char>(i * 7 / 4093 + i + from); };
    const auto elements = static_cast<std::size_t>(n);
    MPI_Datatype spread;  // every second byte
    PMPI_Type_create_resized(MPI_CHAR, 0, 2, &spread);
    PMPI_Type_commit(&spread);
    char* memory = nullptr;
    MPI_Win win;
    MPI_Win_allocate(static_cast<MPI_Aint>(2 * n), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    std::fill_n(memory, 2 * elements, 9);
    std::vector<char> out(elements), in(2 * static_cast<std::size_t>(gets), 5);
    for (MPI_Count i = 0; i < n; ++i)
        out[static_cast<std::size_t>(i)] = value(i, rank);
    const auto is_as_sent = [&](const char* bytes, MPI_Count count, char between, int from) {
        bool good = true;
        for (MPI_Count i = 0; i < count; ++i)
            good = good && bytes[2 * i] == value(i, from) && bytes[2 * i + 1] == between;
        return good;
    };
    MPI_Win_fence(0, win);
    MPI_Put_c(out.data(), n, MPI_CHAR, next, 0, n, spread, win);
    MPI_Win_fence(0, win);
    check::that(is_as_sent(memory, n, 9, previous), "put_c of {} elements to gaps", n);
    PMPI_Barrier(MPI_COMM_WORLD);
    MPI_Get_c(in.data(), gets, spread, next, 0, gets, spread, win);
    MPI_Win_fence(0, win);
    check::that(is_as_sent(in.data(), gets, 5, rank), "get_c of {} elements with gaps", gets);
    std::fill(in.begin(), in.end(), 5);
    MPI_Request request;
    MPI_Win_lock_all(0, win);
    MPI_Rget_c(in.data(), gets, spread, next, 0, gets, spread, win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check::that(is_as_sent(in.data(), gets, 5, rank), "rget_c of {} elements with gaps", gets);
    MPI_Win_unlock_all(win);
    PMPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_fence(0, win);
    int error = MPI_SUCCESS;
    PMPI_Error_class(MPI_Put_c(out.data(), n, MPI_CHAR, next, 2, n, spread, win), &error);
    check::that(error == MPI_ERR_RMA_RANGE, "put_c beyond the window: error class {}", error);
    MPI_Win_fence(0, win);
    check::that(is_as_sent(memory, n, 9, previous), "put_c beyond the window has put nothing");
    MPI_Win_free(&win);
    MPI_Type_free(&spread);
}

// One message and one broadcast of more elements than an int can count.
void huge() {
    const auto n = static_cast<MPI_Count>((std::size_t{1} << 31) + 5);
    std::vector<char> data(static_cast<std::size_t>(n), static_cast<char>(rank));
    const auto is_of = [&](char seed) {
        bool good = true;
        for (std::size_t i = 0; i < data.size(); i += 4093)
            good = good && data[i] == static_cast<char>(seed + static_cast<char>(i * 7 / 4093));
        return good && data.back() == 42;
    };
    const auto fill = [&](char seed) {
        for (std::size_t i = 0; i < data.size(); i += 4093)
            data[i] = static_cast<char>(seed + static_cast<char>(i * 7 / 4093));
        data.back() = 42;
    };
    MPI_Status status;
    if (rank == 0) {
        fill(3);
        MPI_Send_c(data.data(), n, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Count count = 0;
        MPI_Recv_c(data.data(), n, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &status);
        MPI_Get_count_c(&status, MPI_CHAR, &count);
        check::that(is_of(3) && count == n, "a huge message: {} elements", count);
    }
    if (rank == 0) fill(5);
    MPI_Request request;
    MPI_Ibcast_c(data.data(), n, MPI_CHAR, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check::that(is_of(5), "a huge broadcast");
}

// More elements with gaps than an int can count, sent to and from plain bytes, and replaced (12 GiB).
void huge_with_gaps() {
    const auto n = static_cast<MPI_Count>((std::size_t{1} << 31) + 5);
    const auto value = [](std::size_t i) { return static_cast<char>(i * 7 / 4093 + 1); };
    MPI_Datatype spread;  // every second byte
    PMPI_Type_create_resized(MPI_CHAR, 0, 2, &spread);
    PMPI_Type_commit(&spread);
    std::vector<char> data(static_cast<std::size_t>(n) * (rank == 0 ? 1 : 2));
    MPI_Status status;
    MPI_Count count = 0;
    if (rank == 0) {
        for (std::size_t i = 0; i < data.size(); ++i)
            data[i] = value(i);
        MPI_Send_c(data.data(), n, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        std::fill(data.begin(), data.end(), 0);
        MPI_Recv_c(data.data(), n, MPI_CHAR, 1, 2, MPI_COMM_WORLD, &status);
        MPI_Get_count_c(&status, MPI_CHAR, &count);
        bool good = count == n;
        for (std::size_t i = 0; i < data.size(); ++i)
            good = good && data[i] == value(i);
        check::that(good, "a huge message from gaps: {} elements", count);
    } else if (rank == 1) {
        MPI_Recv_c(data.data(), n, spread, 0, 1, MPI_COMM_WORLD, &status);
        MPI_Get_count_c(&status, spread, &count);
        bool good = count == n;
        for (std::size_t i = 0; i < data.size(); ++i)
            good = good && data[i] == (i % 2 == 0 ? value(i / 2) : 0);
        check::that(good, "a huge message to gaps: {} elements", count);
        MPI_Request request;
        MPI_Isend_c(data.data(), n, spread, 0, 2, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Type_free(&spread);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    rank = check::rank_of(MPI_COMM_WORLD);
    size = check::size_of(MPI_COMM_WORLD);
    next = (rank + 1) % size;
    previous = (rank + size - 1) % size;
    wide = rank % 2 == 0;
    if (argc > 1 && std::strcmp(argv[1], "huge") == 0) {
        huge();
        huge_with_gaps();
        return check::finish();
    }
    if (argc > 1 && std::strcmp(argv[1], "huge-window") == 0) {
        one_sided_with_gaps((MPI_Count{1} << 31) + 5, 1000);
        return check::finish();
    }
    messages();
    isendrecv();
    collectives();
    one_sided();
    one_sided_with_gaps(1300000, 1300000);
    return check::finish();
}

#endif
