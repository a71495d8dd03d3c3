#include "halo/mpi_exchange.h"

namespace halo {

// A message to one side arrives from the opposite side.
void MpiExchange::blocking() const {
    const auto peer = [&](int dim, int side) {
        return layout_.has(dim, side) ? block_.neighbour[dim][side] : MPI_PROC_NULL;
    };
    for (int dim = 0; dim < 3; ++dim) {
        const int numbers = static_cast<int>(layout_.face(dim));
        for (int side = 0; side < 2; ++side)
            MPI_Sendrecv(out_ + layout_.face_begin(dim, side), numbers, MPI_DOUBLE, peer(dim, side),
                         tag_of(dim, side), in_ + layout_.face_begin(dim, 1 - side), numbers, MPI_DOUBLE,
                         peer(dim, 1 - side), tag_of(dim, side), MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

void MpiExchange::start() {
    count_ = 0;
    for (const bool sends : {false, true})
        for (int dim = 0; dim < 3; ++dim)
            for (int side = 0; side < 2; ++side) {
                if (!layout_.has(dim, side)) continue;
                const int numbers = static_cast<int>(layout_.face(dim));
                const std::size_t at = layout_.face_begin(dim, side);
                MPI_Request* const request = &requests_[count_++];
                if (sends)
                    MPI_Isend(out_ + at, numbers, MPI_DOUBLE, block_.neighbour[dim][side], tag_of(dim, side),
                              MPI_COMM_WORLD, request);
                else
                    MPI_Irecv(in_ + at, numbers, MPI_DOUBLE, block_.neighbour[dim][side],
                              tag_of(dim, 1 - side), MPI_COMM_WORLD, request);
            }
}

void MpiExchange::wait() {
    MPI_Waitall(count_, requests_.data(), MPI_STATUSES_IGNORE);
}

}  // namespace halo
