// Short receives: non-blocking ones with less room than a message for the device. All ways to complete them,
// beside messages of 61 bytes, truncated ones, and requests of other kinds. After each part a large message
// with the same tag shows that both ends have counted the short ones alike. The switch-over is 4096 bytes
// (CMakeLists.txt).
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "check.h"

namespace {

constexpr int tag = 5, large = 50'000;
const std::vector<int> every_size = {0, 1, 8, 60, 61, 62, 100, 4095};

int rank, size, next, previous;

char byte_of(int sender, int message, int at) {
    return static_cast<char>(sender * 77 + message * 13 + at * 31 + at / 256);
}

struct Message {
    Message(int sender, int number, int bytes) : data(static_cast<std::size_t>(bytes)) {
        for (int i = 0; i < bytes; ++i)
            data[static_cast<std::size_t>(i)] = byte_of(sender, number, i);
    }
    std::vector<char> data;
};

std::vector<char> empty_room(int bytes) {
    return std::vector<char>(static_cast<std::size_t>(bytes) + 8, 'e');
}

// What has arrived in `room`, of a message of `bytes`, and that nothing was written behind it.
void check_room(const std::vector<char>& room, int number, int bytes, const char* where) {
    const Message expected(previous, number, bytes);
    check::that(std::equal(expected.data.begin(), expected.data.end(), room.begin()),
                "{}: the data of message {} of {} bytes", where, number, bytes);
    check::that(std::all_of(room.begin() + bytes, room.end(), [](char c) { return c == 'e'; }),
                "{}: written behind message {} of {} bytes", where, number, bytes);
}

void check_status(const MPI_Status& status, int bytes, const char* where) {
    int count = -1, cancelled = 1;
    PMPI_Get_count(&status, MPI_BYTE, &count);
    PMPI_Test_cancelled(&status, &cancelled);
    check::that(status.MPI_SOURCE == previous && status.MPI_TAG == tag && count == bytes && cancelled == 0,
                "{}: status has source {}, tag {}, {} bytes, cancelled {}; {} bytes were expected", where,
                status.MPI_SOURCE, status.MPI_TAG, count, cancelled, bytes);
}

// If an end has counted the messages before it wrongly, the receive gets another message or is not early,
// which the summary tells (CMakeLists.txt).
void exchange_large(const char* where) {
    std::vector<char> in = empty_room(large);
    const Message out(rank, 1000, large);
    MPI_Request request;
    MPI_Status status;
    MPI_Irecv(in.data(), large + 8, MPI_BYTE, previous, tag, MPI_COMM_WORLD, &request);
    MPI_Send(out.data.data(), large, MPI_BYTE, next, tag, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    check_status(status, large, where);
    check_room(in, 1000, large, where);
}

using Complete = void (*)(std::vector<MPI_Request>&, std::vector<MPI_Status>&);

void by_waitall(std::vector<MPI_Request>& requests, std::vector<MPI_Status>& statuses) {
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), statuses.data());
}
void by_wait(std::vector<MPI_Request>& requests, std::vector<MPI_Status>& statuses) {
    for (std::size_t i = requests.size(); i-- > 0;)
        MPI_Wait(&requests[i], &statuses[i]);
}
void by_test(std::vector<MPI_Request>& requests, std::vector<MPI_Status>& statuses) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
        for (int flag = 0; flag == 0;)
            MPI_Test(&requests[i], &flag, &statuses[i]);
    }
}
void by_testall(std::vector<MPI_Request>& requests, std::vector<MPI_Status>& statuses) {
    for (int flag = 0; flag == 0;)
        MPI_Testall(static_cast<int>(requests.size()), requests.data(), &flag, statuses.data());
}
template <bool waits>
void by_any(std::vector<MPI_Request>& requests, std::vector<MPI_Status>& statuses) {
    const int count = static_cast<int>(requests.size());
    for (int index = 0; index != MPI_UNDEFINED;) {
        MPI_Status status;
        int flag = 1;
        if (waits) {
            MPI_Waitany(count, requests.data(), &index, &status);
        } else {
            flag = 0;
            while (flag == 0)
                MPI_Testany(count, requests.data(), &index, &flag, &status);
        }
        if (index != MPI_UNDEFINED) statuses[static_cast<std::size_t>(index)] = status;
    }
}
template <bool waits>
void by_some(std::vector<MPI_Request>& requests, std::vector<MPI_Status>& statuses) {
    const int count = static_cast<int>(requests.size());
    std::vector<int> indices(requests.size());
    std::vector<MPI_Status> some(requests.size());
    for (int done = 0; done != MPI_UNDEFINED;) {
        (waits ? MPI_Waitsome : MPI_Testsome)(count, requests.data(), &done, indices.data(), some.data());
        for (int i = 0; i < done; ++i)
            statuses[static_cast<std::size_t>(indices[static_cast<std::size_t>(i)])] =
                some[static_cast<std::size_t>(i)];
    }
}
void after_get_status(std::vector<MPI_Request>& requests, std::vector<MPI_Status>& statuses) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
        for (int flag = 0; flag == 0;)
            MPI_Request_get_status(requests[i], &flag, &statuses[i]);
    }
    by_waitall(requests, statuses);
}
const std::vector<std::pair<const char*, Complete>> ways = {{"waitall", by_waitall},
                                                            {"wait", by_wait},
                                                            {"test", by_test},
                                                            {"testall", by_testall},
                                                            {"waitany", by_any<true>},
                                                            {"testany", by_any<false>},
                                                            {"waitsome", by_some<true>},
                                                            {"testsome", by_some<false>},
                                                            {"get_status", after_get_status}};

// Messages of all sizes, each into a buffer of its size and into one with more room.
void sizes_and_ways() {
    for (const auto& [name, complete] : ways) {
        std::vector<std::vector<char>> in;
        std::vector<Message> out;
        std::vector<int> bytes;
        for (int each : every_size) {
            for (int more : {0, 30}) {
                out.emplace_back(rank, static_cast<int>(out.size()), each);
                in.push_back(empty_room(each + more));
                bytes.push_back(each);
            }
        }
        const std::size_t n = in.size();
        std::vector<MPI_Request> requests(n), sends(n);
        std::vector<MPI_Status> statuses(n);
        for (std::size_t i = 0; i < n; ++i)
            MPI_Irecv(in[i].data(), static_cast<int>(in[i].size()) - 8, MPI_BYTE, previous, tag,
                      MPI_COMM_WORLD, &requests[i]);
        for (std::size_t i = 0; i < n; ++i)
            MPI_Isend(out[i].data.data(), bytes[i], MPI_BYTE, next, tag, MPI_COMM_WORLD, &sends[i]);
        MPI_Waitall(static_cast<int>(n), sends.data(), MPI_STATUSES_IGNORE);
        complete(requests, statuses);
        for (std::size_t i = 0; i < n; ++i) {
            check::that(requests[i] == MPI_REQUEST_NULL, "{}: request {} is not null", name, i);
            check_status(statuses[i], bytes[i], name);
            check_room(in[i], static_cast<int>(i), bytes[i], name);
        }
        exchange_large(name);
    }
}

// Every other int. The types are freed while the receives are outstanding.
void with_gaps() {
    for (const auto& [name, complete] : ways) {
        const std::vector<int> ints = {2, 15, 16, 200};  // 60 bytes and 64
        std::vector<std::vector<int>> in;
        std::vector<MPI_Request> requests;
        std::vector<MPI_Status> statuses(2 * ints.size());
        for (int each : ints) {
            for (int more : {0, 1}) {
                MPI_Datatype gaps;
                PMPI_Type_vector(each + more, 1, 2, MPI_INT, &gaps);
                PMPI_Type_commit(&gaps);
                in.emplace_back(static_cast<std::size_t>(2 * (each + 2)), -1);
                requests.emplace_back();
                MPI_Irecv(in.back().data(), 1, gaps, previous, tag, MPI_COMM_WORLD, &requests.back());
                MPI_Type_free(&gaps);
            }
        }
        for (int each : ints) {
            const std::vector<int> out(static_cast<std::size_t>(each), rank + 10 * each);
            MPI_Send(out.data(), each, MPI_INT, next, tag, MPI_COMM_WORLD);
            MPI_Send(out.data(), each, MPI_INT, next, tag, MPI_COMM_WORLD);
        }
        complete(requests, statuses);
        for (std::size_t i = 0; i < in.size(); ++i) {
            const int count = ints[i / 2];
            check_status(statuses[i], 4 * count, name);
            for (int k = 0; k < static_cast<int>(in[i].size()); ++k) {
                const int expected = k % 2 == 0 && k < 2 * count ? previous + 10 * count : -1;
                check::that(in[i][static_cast<std::size_t>(k)] == expected, "{}: {} ints with gaps, at {}",
                            name, count, k);
            }
        }
        exchange_large(name);
    }
}

// One wait for short receives, a wildcard, null requests, persistent ones and sends.
void mixture() {
    for (const bool wildcard_first : {false, true}) {
        for (const bool told : {false, true}) {
            constexpr int count = 9;
            std::vector<std::vector<char>> in(count, empty_room(100));
            std::vector<Message> out;
            for (int i = 0; i < count; ++i)
                out.emplace_back(rank, i, i % 2 == 0 ? 61 : 50 + i);
            MPI_Request requests[count + 5], persistent[2];
            int posted = 0;
            const auto post = [&](int source) {
                MPI_Irecv(in[static_cast<std::size_t>(posted)].data(), 100, MPI_BYTE, source, tag,
                          MPI_COMM_WORLD, &requests[posted]);
                ++posted;
            };
            if (wildcard_first) post(MPI_ANY_SOURCE);
            while (posted < count - 2)
                post(previous);
            if (!wildcard_first) post(MPI_ANY_SOURCE);
            while (posted < count - 1)
                post(previous);
            MPI_Recv_init(in[count - 1].data(), 100, MPI_BYTE, previous, tag, MPI_COMM_WORLD, &persistent[0]);
            MPI_Recv_init(in[0].data(), 100, MPI_BYTE, previous, tag, MPI_COMM_WORLD, &persistent[1]);
            MPI_Start(&persistent[0]);
            requests[count - 1] = persistent[0];
            requests[count] = persistent[1];
            requests[count + 1] = MPI_REQUEST_NULL;
            for (int i = 0; i < count; ++i) {
                const auto& data = out[static_cast<std::size_t>(i)].data;
                MPI_Request* request = i < 3 ? &requests[count + 2 + i] : nullptr;
                if (request != nullptr)
                    MPI_Isend(data.data(), static_cast<int>(data.size()), MPI_BYTE, next, tag, MPI_COMM_WORLD,
                              request);
                else
                    MPI_Send(data.data(), static_cast<int>(data.size()), MPI_BYTE, next, tag, MPI_COMM_WORLD);
            }
            MPI_Status statuses[count + 5];
            const int result = MPI_Waitall(count + 5, requests, told ? statuses : MPI_STATUSES_IGNORE);
            check::that(result == MPI_SUCCESS, "a mixture: waitall returned {}", result);
            for (int i = 0; i < count; ++i) {
                const int bytes = static_cast<int>(out[static_cast<std::size_t>(i)].data.size());
                check_room(in[static_cast<std::size_t>(i)], i, bytes, "a mixture");
                if (told) check_status(statuses[i], bytes, "a mixture");
            }
            check::that(requests[count - 1] == persistent[0] && requests[count] == persistent[1],
                        "a mixture: a persistent request has changed");
            MPI_Request_free(&persistent[0]);
            MPI_Request_free(&persistent[1]);
            exchange_large("a mixture");
        }
    }
}

int class_of(int error) {
    int its_class = MPI_SUCCESS;
    PMPI_Error_class(error, &its_class);
    return its_class;
}

// Messages that fit and others that do not, in one wait. Those that do not are told by their statuses. It is
// the first part: later ones make the large messages the host's, and Open MPI 4.1 writes past receives that
// are too short for those.
void truncation() {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const std::vector<std::pair<int, int>> sent_and_room = {{100, 100}, {100, 80}, {61, 61},    {61, 40},
                                                            {8, 4},     {8, 8},    {large, 80}, {large, 20},
                                                            {61, 100},  {30, 30}};
    const std::size_t n = sent_and_room.size();
    std::vector<std::vector<char>> in;
    std::vector<Message> out;
    std::vector<MPI_Request> requests(n), sends(n);
    std::vector<MPI_Status> statuses(n);
    for (std::size_t i = 0; i < n; ++i) {
        in.push_back(empty_room(sent_and_room[i].second));
        out.emplace_back(rank, static_cast<int>(i), sent_and_room[i].first);
        MPI_Irecv(in[i].data(), sent_and_room[i].second, MPI_BYTE, previous, tag, MPI_COMM_WORLD,
                  &requests[i]);
    }
    for (std::size_t i = 0; i < n; ++i)
        MPI_Isend(out[i].data.data(), sent_and_room[i].first, MPI_BYTE, next, tag, MPI_COMM_WORLD, &sends[i]);
    std::vector<bool> over(n, false);
    std::size_t ended = 0;
    // An error may end a wait before all requests are complete.
    for (int waits = 0; ended < n && waits < 20; ++waits) {
        const int result = MPI_Waitall(static_cast<int>(n), requests.data(), statuses.data());
        check::that(waits > 0 || class_of(result) == MPI_ERR_IN_STATUS, "truncation: waitall returned {}",
                    result);
        for (std::size_t i = 0; i < n; ++i) {
            const auto [bytes, room] = sent_and_room[i];
            const int error =
                class_of(result) == MPI_ERR_IN_STATUS ? class_of(statuses[i].MPI_ERROR) : MPI_SUCCESS;
            if (over[i] || error == MPI_ERR_PENDING) continue;
            over[i] = true;
            ++ended;
            check::that(requests[i] == MPI_REQUEST_NULL, "truncation: request {} is not null", i);
            check::that(error == (bytes > room ? MPI_ERR_TRUNCATE : MPI_SUCCESS),
                        "truncation: {} bytes into {}: error {}", bytes, room, error);
            if (bytes <= room) {
                check_room(in[i], static_cast<int>(i), bytes, "truncation");
                check_status(statuses[i], bytes, "truncation");
            } else {
                check::that(std::count(in[i].begin() + room, in[i].end(), 'e') == 8,
                            "truncation: {} bytes into {}: written behind", bytes, room);
            }
        }
    }
    check::that(ended == n, "truncation: {} of {} receives ended", ended, n);
    MPI_Waitall(static_cast<int>(n), sends.data(), MPI_STATUSES_IGNORE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    exchange_large("truncation");
}

// Cancelled receives among others, and a receive whose request is freed.
void cancelled_and_freed() {
    for (int room : {40, 100}) {
        std::vector<std::vector<char>> in(4, empty_room(room));
        MPI_Request requests[4];
        MPI_Status statuses[4];
        const auto post = [&](int i) {
            MPI_Irecv(in[static_cast<std::size_t>(i)].data(), room, MPI_BYTE, previous, tag, MPI_COMM_WORLD,
                      &requests[i]);
        };
        for (int i = 0; i < 4; ++i)
            post(i);
        MPI_Cancel(&requests[1]);
        MPI_Request_free(&requests[3]);
        PMPI_Barrier(MPI_COMM_WORLD);
        for (int i : {0, 2, 3})
            MPI_Send(Message(rank, i, 30).data.data(), 30, MPI_BYTE, next, tag, MPI_COMM_WORLD);
        MPI_Waitall(3, requests, statuses);
        int cancelled = 0;
        PMPI_Test_cancelled(&statuses[1], &cancelled);
        check::that(cancelled != 0, "a receive of {} bytes was not cancelled", room);
        check::that(in[1] == empty_room(room), "a cancelled receive was written to");
        for (int i : {0, 2}) {
            check_status(statuses[i], 30, "beside a cancelled receive");
            check_room(in[static_cast<std::size_t>(i)], i, 30, "beside a cancelled receive");
        }
        exchange_large("after a cancelled receive");
        // All messages before that one have arrived; a call or two may have to bring this one to its buffer.
        const volatile char* first = in[3].data();
        for (int flag = 0, calls = 0; *first == 'e' && calls < 1'000'000; ++calls)
            MPI_Iprobe(previous, tag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        check_room(in[3], 3, 30, "a receive whose request was freed");
    }
}

// More than the table of receives has room for at first, and than a wait keeps in its frame.
void many() {
    constexpr int count = 1500, bytes = 24;
    std::vector<char> in(static_cast<std::size_t>(count) * bytes, 'e'), out(in.size());
    std::vector<MPI_Request> requests(count);
    for (int i = 0; i < count; ++i) {
        const Message message(rank, i, bytes);
        std::copy(message.data.begin(), message.data.end(), out.begin() + std::ptrdiff_t{i} * bytes);
        MPI_Irecv(in.data() + std::ptrdiff_t{i} * bytes, bytes, MPI_BYTE, previous, tag, MPI_COMM_WORLD,
                  &requests[static_cast<std::size_t>(i)]);
    }
    for (int i = 0; i < count; ++i)
        MPI_Send(out.data() + std::ptrdiff_t{i} * bytes, bytes, MPI_BYTE, next, tag, MPI_COMM_WORLD);
    for (int i = count - 1; i >= count - 500; --i)
        MPI_Wait(&requests[static_cast<std::size_t>(i)], MPI_STATUS_IGNORE);
    MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
    for (int i = 0; i < count; ++i) {
        const Message expected(previous, i, bytes);
        check::that(
            std::equal(expected.data.begin(), expected.data.end(), in.begin() + std::ptrdiff_t{i} * bytes),
            "many: message {}", i);
    }
    exchange_large("many");
}

// Messages that a matched probe has taken, and that have arrived before the wait for all of them. Those of 61
// bytes come in two messages of the host's MPI.
void matched_probes() {
    const int sizes[] = {61, 60, 61};
    std::vector<Message> out;
    std::vector<std::vector<char>> in;
    MPI_Request sends[3], receives[3];
    MPI_Status statuses[3];
    for (int i = 0; i < 3; ++i) {
        out.emplace_back(rank, i, sizes[i]);
        in.push_back(empty_room(sizes[i]));
    }
    for (int i = 0; i < 3; ++i)
        MPI_Isend(out[static_cast<std::size_t>(i)].data.data(), sizes[i], MPI_BYTE, next, tag, MPI_COMM_WORLD,
                  &sends[i]);
    for (int i = 0; i < 3; ++i) {
        MPI_Message message;
        MPI_Mprobe(previous, tag, MPI_COMM_WORLD, &message, &statuses[i]);
        check_status(statuses[i], sizes[i], "a matched probe");
        MPI_Imrecv(in[static_cast<std::size_t>(i)].data(), sizes[i], MPI_BYTE, &message, &receives[i]);
    }
    for (const MPI_Request& receive : receives) {
        for (int flag = 0; flag == 0;)
            MPI_Request_get_status(receive, &flag, MPI_STATUS_IGNORE);
    }
    MPI_Waitall(3, receives, statuses);
    MPI_Waitall(3, sends, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 3; ++i) {
        check_status(statuses[i], sizes[i], "a receive of a matched message");
        check_room(in[static_cast<std::size_t>(i)], i, sizes[i], "a receive of a matched message");
    }
    exchange_large("matched probes");
}

// The communicator is freed while they are outstanding.
void communicator_freed() {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    std::vector<std::vector<char>> in(3, empty_room(61));
    MPI_Request requests[3];
    for (int i = 0; i < 3; ++i)
        MPI_Irecv(in[static_cast<std::size_t>(i)].data(), 61, MPI_BYTE, previous, tag, comm, &requests[i]);
    for (int i = 0; i < 3; ++i)
        MPI_Send(Message(rank, i, 59 + i).data.data(), 59 + i, MPI_BYTE, next, tag, comm);
    MPI_Comm_free(&comm);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 3; ++i)
        check_room(in[static_cast<std::size_t>(i)], i, 59 + i, "a freed communicator");
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    rank = check::rank_of(MPI_COMM_WORLD);
    size = check::size_of(MPI_COMM_WORLD);
    next = (rank + 1) % size;
    previous = (rank + size - 1) % size;
    for (auto* part : {truncation, sizes_and_ways, with_gaps, mixture, cancelled_and_freed, many,
                       matched_probes, communicator_freed}) {
        part();
        PMPI_Barrier(MPI_COMM_WORLD);
    }
    return check::finish();
}
