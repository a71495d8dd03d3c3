// A large message arrives for a posted receive that waits for the host's MPI, while its receiver is in a call
// of the host's MPI that its sender enters only after the send is done. Here devices store no messages ahead
// of their receives, and the switch-over is 4096 bytes (CMakeLists.txt). Ranks work in pairs: an even one
// sends to the next. The last of an odd number takes part only in collective calls.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "check.h"

namespace {

constexpr int large = 1 << 20, tag = 3;

int rank, size, other;
bool sends, receives;

using Bytes = std::vector<char>;

Bytes filled(int bytes, int serial) {
    Bytes data(static_cast<std::size_t>(bytes));
    for (std::size_t i = 0; i < data.size(); ++i)
        data[i] = static_cast<char>(i * 31 + i / 256 + static_cast<std::size_t>(serial) * 77);
    return data;
}

int serial = 0;
MPI_Win window;

// The calls in which a rank waits.
void barrier() {
    MPI_Barrier(MPI_COMM_WORLD);
}
void past_the_library() {
    PMPI_Barrier(MPI_COMM_WORLD);
}
void allreduce() {
    int one = 1, all = 0;
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check::that(all == size, "an allreduce gave {}", all);
}
void fence() {
    MPI_Win_fence(0, window);
}
void comm_dup() {
    MPI_Comm made;
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    MPI_Comm_free(&made);
}
void file() {
    const char* directory = std::getenv("OFFPATH_DIR");
    const std::string name = std::string(directory != nullptr ? directory : "/tmp") + "/file";
    MPI_File opened;
    if (MPI_File_open(MPI_COMM_WORLD, name.c_str(),
                      MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                      &opened) != MPI_SUCCESS)
        return;
    MPI_File_write_at_all(opened, rank, "x", 1, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File_close(&opened);
}
void receive() {
    if (sends) MPI_Send(nullptr, 0, MPI_BYTE, other, 1, MPI_COMM_WORLD);
    if (receives) MPI_Recv(nullptr, 0, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
void probe() {
    if (receives) MPI_Probe(other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    receive();
}
void synchronous_send() {
    if (sends) MPI_Recv(nullptr, 0, MPI_BYTE, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (receives) MPI_Ssend(nullptr, 0, MPI_BYTE, other, 2, MPI_COMM_WORLD);
}

const std::pair<const char*, void (*)()> calls[] = {
    {"MPI_Barrier", barrier},        {"PMPI_Barrier", past_the_library},
    {"MPI_Allreduce", allreduce},    {"MPI_Win_fence", fence},
    {"MPI_Comm_dup", comm_dup},      {"MPI_File_write_at_all", file},
    {"MPI_Recv", receive},           {"MPI_Probe", probe},
    {"MPI_Ssend", synchronous_send},
};

void check_message(const Bytes& in, const MPI_Status& status, int its_serial, const char* where) {
    int bytes = -1;
    PMPI_Get_count(&status, MPI_BYTE, &bytes);
    check::that(status.MPI_SOURCE == other && bytes == large, "{}: {} bytes from {}", where, bytes,
                status.MPI_SOURCE);
    check::that(in == filled(large, its_serial), "{}: message {} is wrong", where, its_serial);
}

void during_a_call(const char* name, void (*call)()) {
    ++serial;
    Bytes in(large);
    MPI_Request request;
    if (receives) MPI_Irecv(in.data(), large, MPI_BYTE, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &request);
    if (sends) MPI_Send(filled(large, serial).data(), large, MPI_BYTE, other, tag, MPI_COMM_WORLD);
    call();
    if (!receives) return;
    MPI_Status status;
    MPI_Wait(&request, &status);
    check_message(in, status, serial, name);
}

// There are receives behind one with a wildcard, and one that is started again.
void behind_a_wildcard() {
    Bytes first(large), second(large), third(large);
    MPI_Request requests[3];
    serial += 3;
    MPI_Recv_init(third.data(), large, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[2]);
    if (receives) {
        MPI_Irecv(first.data(), large, MPI_BYTE, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(second.data(), large, MPI_BYTE, other, tag, MPI_COMM_WORLD, &requests[1]);
        MPI_Start(&requests[2]);
    }
    for (int i = 0; i < 3 && sends; ++i)
        MPI_Send(filled(large, serial + i).data(), large, MPI_BYTE, other, tag, MPI_COMM_WORLD);
    PMPI_Barrier(MPI_COMM_WORLD);
    if (receives) {
        MPI_Status statuses[3];
        MPI_Waitall(3, requests, statuses);
        check_message(first, statuses[0], serial, "the first of three");
        check_message(second, statuses[1], serial + 1, "the second of three");
        check_message(third, statuses[2], serial + 2, "the third of three");
    }
    MPI_Request_free(&requests[2]);
    serial += 3;
}

// The message is unpacked into memory whose gaps must not change.
void unpacked() {
    constexpr int blocks = large / 8;
    MPI_Datatype every_other;
    MPI_Type_vector(blocks, 8, 16, MPI_BYTE, &every_other);
    MPI_Type_commit(&every_other);
    Bytes in(2 * large, 9);
    MPI_Request request;
    if (receives) MPI_Irecv(in.data(), 1, every_other, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &request);
    ++serial;
    if (sends) MPI_Ssend(filled(large, serial).data(), large, MPI_BYTE, other, tag, MPI_COMM_WORLD);
    PMPI_Barrier(MPI_COMM_WORLD);
    if (receives) {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        Bytes expected(2 * large, 9);
        const Bytes bytes = filled(large, serial);
        for (std::size_t i = 0; i < blocks; ++i)
            std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(8 * i), 8,
                        expected.begin() + static_cast<std::ptrdiff_t>(16 * i));
        check::that(in == expected, "a message that is unpacked");
    }
    MPI_Type_free(&every_other);
}

// The message is too long. Its sender succeeds all the same.
void too_long() {
    Bytes in(large / 2, 0);
    MPI_Request request;
    MPI_Comm returns;
    MPI_Comm_dup(MPI_COMM_WORLD, &returns);
    MPI_Comm_set_errhandler(returns, MPI_ERRORS_RETURN);
    if (receives) MPI_Irecv(in.data(), large / 2, MPI_BYTE, MPI_ANY_SOURCE, tag, returns, &request);
    if (sends) MPI_Send(filled(large, 0).data(), large, MPI_BYTE, other, tag, returns);
    PMPI_Barrier(MPI_COMM_WORLD);
    if (receives) {
        const int error = MPI_Wait(&request, MPI_STATUS_IGNORE);
        int its_class = MPI_SUCCESS;
        MPI_Error_class(error, &its_class);
        check::that(its_class == MPI_ERR_TRUNCATE, "a message that is too long: error {}", its_class);
    }
    MPI_Comm_free(&returns);
}

// The buffer looks as if nothing had arrived. The receive stays pending, can be cancelled, and does not keep
// the memory.
void nothing_comes() {
    Bytes in(large, 5);
    MPI_Request request;
    MPI_Irecv(in.data(), large, MPI_BYTE, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &request);
    PMPI_Barrier(MPI_COMM_WORLD);
    MPI_Status status;
    int cancelled = 0;
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    check::that(cancelled == 1 && in == Bytes(large, 5), "a receive that got nothing");
    PMPI_Barrier(MPI_COMM_WORLD);
}

// As many messages as the device may hold wait there for receives. The others go by the host's MPI, also into
// receives that were posted to the device.
void more_than_the_device_holds() {
    constexpr int waiting = 1100, bytes = 5000, huge = 20 << 20, early_tag = 30, any_tag = 31,
                  waiting_tag = 32;
    Bytes early(receives ? huge : 0), any(receives ? huge : 0);
    MPI_Request requests[2];
    if (receives) {
        MPI_Irecv(early.data(), huge, MPI_BYTE, other, early_tag, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(any.data(), huge, MPI_BYTE, MPI_ANY_SOURCE, any_tag, MPI_COMM_WORLD, &requests[1]);
    }
    PMPI_Barrier(MPI_COMM_WORLD);
    const Bytes small = filled(bytes, 1), out = filled(huge, 2);
    std::vector<MPI_Request> sent(waiting, MPI_REQUEST_NULL);
    for (int i = 0; i < waiting && sends; ++i)
        MPI_Isend(small.data(), bytes, MPI_BYTE, other, waiting_tag, MPI_COMM_WORLD,
                  &sent[static_cast<std::size_t>(i)]);
    if (sends) {
        MPI_Send(out.data(), huge, MPI_BYTE, other, early_tag, MPI_COMM_WORLD);
        MPI_Send(out.data(), huge, MPI_BYTE, other, any_tag, MPI_COMM_WORLD);
    }
    PMPI_Barrier(MPI_COMM_WORLD);
    if (receives) {
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check::that(early == out, "a message into an early receive past a full device");
        check::that(any == out, "a message into a receive with a wildcard past a full device");
        Bytes in(bytes);
        for (int i = 0; i < waiting; ++i) {
            std::fill(in.begin(), in.end(), 0);
            MPI_Recv(in.data(), bytes, MPI_BYTE, other, waiting_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check::that(in == small, "message {} of those that waited", i);
        }
    }
    MPI_Waitall(waiting, sent.data(), MPI_STATUSES_IGNORE);
}

// All other ranks send to rank 0.
void all_to_one() {
    const auto count = static_cast<std::size_t>(size - 1);
    std::vector<Bytes> in(rank == 0 ? count : 0, Bytes(large));
    std::vector<MPI_Request> requests(in.size());
    std::vector<MPI_Status> statuses(in.size());
    for (std::size_t i = 0; i < in.size(); ++i)
        MPI_Irecv(in[i].data(), large, MPI_BYTE, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &requests[i]);
    if (rank != 0) MPI_Send(filled(large, rank).data(), large, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Waitall(static_cast<int>(in.size()), requests.data(), statuses.data());
    for (std::size_t i = 0; i < in.size(); ++i)
        check::that(in[i] == filled(large, statuses[i].MPI_SOURCE), "a message of all to one");
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    rank = check::rank_of(MPI_COMM_WORLD);
    size = check::size_of(MPI_COMM_WORLD);
    other = rank ^ 1;
    sends = rank % 2 == 0 && other < size;
    receives = rank % 2 == 1;
    MPI_Win_create(nullptr, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    for (int repeat = 0; repeat < 3; ++repeat) {
        for (const auto& [name, call] : calls)
            during_a_call(name, call);
    }
    behind_a_wildcard();
    unpacked();
    too_long();
    nothing_comes();
    all_to_one();
    if (size <= 3) more_than_the_device_holds();
    MPI_Win_free(&window);
    during_a_call("before MPI_Finalize", barrier);
    return check::finish();
}
