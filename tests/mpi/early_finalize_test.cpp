// Ranks that reach MPI_Finalize before their messages are received: buffered sends, and sends whose requests
// were freed, of all sizes. The odd ranks receive late and in several ways; by then the even ones are in
// MPI_Finalize.
#include <unistd.h>

#include <cstring>

#include "check.h"

namespace {

constexpr int sizes[] = {8, 61, 100, 4095, 4096, 300000, 61, 2000000};
constexpr int rounds = 4, largest = 2000000;

char value(int sender, int round, int size, std::size_t i) {
    return static_cast<char>(sender * 50 + round * 11 + size + static_cast<int>(i / 1000));
}

std::vector<char> message(int sender, int round, int size) {
    std::vector<char> bytes(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = value(sender, round, size, i);
    return bytes;
}

void send_and_leave(int rank, int receiver, MPI_Comm comm) {
    static std::vector<std::vector<char>> kept;  // until the process ends
    static std::vector<char> buffer(static_cast<std::size_t>(rounds) * 4 * (largest + MPI_BSEND_OVERHEAD));
    MPI_Buffer_attach(buffer.data(), static_cast<int>(buffer.size()));
    for (int round = 0; round < rounds; ++round) {
        for (int size : sizes) {
            kept.push_back(message(rank, round, size));
            if (round % 2 == 0) {
                MPI_Bsend(kept.back().data(), size, MPI_BYTE, receiver, round, comm);
                std::memset(kept.back().data(), 0, kept.back().size());
            } else {
                MPI_Request request;
                MPI_Isend(kept.back().data(), size, MPI_BYTE, receiver, round, comm, &request);
                MPI_Request_free(&request);
            }
        }
    }
}

void receive_late(int sender, MPI_Comm comm) {
    usleep(300000);
    std::vector<char> in(largest);
    for (int round = rounds - 1; round >= 0; --round) {  // not in the order of tags
        for (int size : sizes) {
            MPI_Status status;
            if (round == 1) {
                MPI_Message matched;
                MPI_Mprobe(sender, round, comm, &matched, MPI_STATUS_IGNORE);
                MPI_Mrecv(in.data(), largest, MPI_BYTE, &matched, &status);
            } else if (round == 2) {
                MPI_Request request;
                MPI_Irecv(in.data(), largest, MPI_BYTE, MPI_ANY_SOURCE, round, comm, &request);
                MPI_Wait(&request, &status);
            } else {
                MPI_Recv(in.data(), largest, MPI_BYTE, sender, round, comm, &status);
            }
            int bytes = 0;
            PMPI_Get_count(&status, MPI_BYTE, &bytes);
            bool good = bytes == size;
            for (std::size_t i = 0; good && i < static_cast<std::size_t>(size); ++i)
                good = in[i] == value(sender, round, size, i);
            check::that(good, "round {}: {} bytes in place of {}", round, bytes, size);
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int rank = check::rank_of(MPI_COMM_WORLD);
    const int size = check::size_of(MPI_COMM_WORLD);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (rank % 2 == 0 && rank + 1 < size) send_and_leave(rank, rank + 1, comm);
    if (rank % 2 != 0) receive_late(rank - 1, comm);
    MPI_Finalize();
    return check::failures == 0 ? 0 : 1;
}
