#include "letters.h"

#include <mpi.h>

#include <deque>
#include <vector>

#include "runtime.h"

namespace offpath::mpi {
namespace {

constexpr int letter_tag = 1;

struct Sent {
    LetterOnWire wire;
    MPI_Request request = MPI_REQUEST_NULL;
};

std::deque<Sent> sent_letters;       // a deque, so that their addresses do not change
std::vector<std::uint32_t> sent_to;  // the number of letters sent, by rank of the world
MPI_Request hearing = MPI_REQUEST_NULL;
std::uint32_t heard = 0;

void listen() {
    std::atomic_ref(arriving_letter.here).store(0, std::memory_order_relaxed);
    PMPI_Irecv(&arriving_letter, sizeof arriving_letter, MPI_BYTE, MPI_ANY_SOURCE, letter_tag,
               runtime().service, &hearing);
}

void forget_sent() {
    while (!sent_letters.empty()) {
        int flag = 0;
        PMPI_Test(&sent_letters.front().request, &flag, MPI_STATUS_IGNORE);
        if (flag == 0) return;
        sent_letters.pop_front();
    }
}

}  // namespace

void open_letters() {
    sent_to.assign(static_cast<std::size_t>(runtime().size), 0);
    listen();
}

void close_letters() {
    std::uint32_t expected = 0;
    PMPI_Reduce_scatter_block(sent_to.data(), &expected, 1, MPI_UINT32_T, MPI_SUM, runtime().service);
    for (; heard != expected; ++heard) {
        PMPI_Wait(&hearing, MPI_STATUS_IGNORE);
        listen();
    }
    PMPI_Cancel(&hearing);
    PMPI_Wait(&hearing, MPI_STATUS_IGNORE);
    for (Sent& sent : sent_letters)
        PMPI_Wait(&sent.request, MPI_STATUS_IGNORE);
    sent_letters.clear();
}

void send_letter(int world_rank, Letter letter) {
    forget_sent();
    letter.from = runtime().rank;
    Sent& sent = sent_letters.emplace_back();
    sent.wire = {letter, 1};
    PMPI_Isend(&sent.wire, sizeof sent.wire, MPI_BYTE, world_rank, letter_tag, runtime().service,
               &sent.request);
    ++sent_to[static_cast<std::size_t>(world_rank)];
}

std::optional<Letter> next_letter() {
    if (hearing == MPI_REQUEST_NULL) return std::nullopt;
    int flag = 0;
    PMPI_Test(&hearing, &flag, MPI_STATUS_IGNORE);
    if (flag == 0) return std::nullopt;
    const Letter letter = arriving_letter.letter;
    ++heard;
    listen();
    return letter;
}

}  // namespace offpath::mpi
