// Mailbox: messages of one small type that a rank may send to another one at any time, by the host's MPI.
//
// A receive for the next message is always posted. The host's MPI fills it while it progresses for whatever
// reason, so a look costs one load (Arriving::has_come). Threads: one at a time, the caller locks.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "arriving.h"

namespace offpath::mpi {

template <typename Message>
class Mailbox {
  public:
    // Borrows the place for the next message.
    explicit Mailbox(Arriving<Message>& coming) : coming_(coming) {}

    // Collective. `comm` and `tag` are for this mailbox alone.
    void open(MPI_Comm comm, int tag) {
        comm_ = comm;
        tag_ = tag;
        int ranks = 0;
        PMPI_Comm_size(comm, &ranks);
        sent_to_.assign(static_cast<std::size_t>(ranks), 0);
        listen();
    }
    // Collective. Waits until all messages that any rank has sent have arrived, and calls `take` for those
    // that nobody has taken.
    template <typename Take>
    void close(Take take) {
        std::uint32_t expected = 0;
        PMPI_Reduce_scatter_block(sent_to_.data(), &expected, 1, MPI_UINT32_T, MPI_SUM, comm_);
        while (heard_ != expected) {
            PMPI_Wait(&hearing_, MPI_STATUS_IGNORE);
            take(taken());
        }
        PMPI_Cancel(&hearing_);
        PMPI_Wait(&hearing_, MPI_STATUS_IGNORE);
        for (Sent& sent : sent_)
            PMPI_Wait(&sent.request, MPI_STATUS_IGNORE);
        sent_.clear();
    }

    void send(int to, const Message& message) {
        forget_sent();
        Sent& sent = sent_.emplace_back();
        sent.wire = {message, 1};
        PMPI_Isend(&sent.wire, sizeof sent.wire, MPI_BYTE, to, tag_, comm_, &sent.request);
        ++sent_to_[static_cast<std::size_t>(to)];
    }

    // Lets the host's MPI progress.
    std::optional<Message> next() {
        if (hearing_ == MPI_REQUEST_NULL) return std::nullopt;
        int flag = 0;
        PMPI_Test(&hearing_, &flag, MPI_STATUS_IGNORE);
        if (flag == 0) return std::nullopt;
        return taken();
    }

  private:
    struct Sent {
        Arriving<Message> wire;
        MPI_Request request = MPI_REQUEST_NULL;
    };

    void listen() {
        std::atomic_ref(coming_.here).store(0, std::memory_order_relaxed);
        PMPI_Irecv(&coming_, sizeof coming_, MPI_BYTE, MPI_ANY_SOURCE, tag_, comm_, &hearing_);
    }
    Message taken() {
        const Message message = coming_.message;
        ++heard_;
        listen();
        return message;
    }
    void forget_sent() {
        while (!sent_.empty()) {
            int flag = 0;
            PMPI_Test(&sent_.front().request, &flag, MPI_STATUS_IGNORE);
            if (flag == 0) return;
            sent_.pop_front();
        }
    }

    MPI_Comm comm_ = MPI_COMM_NULL;
    int tag_ = 0;
    std::deque<Sent> sent_;               // a deque, so that their addresses do not change
    std::vector<std::uint32_t> sent_to_;  // the number of messages sent, by rank
    Arriving<Message>& coming_;
    MPI_Request hearing_ = MPI_REQUEST_NULL;
    std::uint32_t heard_ = 0;
};

}  // namespace offpath::mpi
