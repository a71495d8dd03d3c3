#include "received_bytes.h"

#include <algorithm>
#include <array>

namespace offpath::mpi::p2p {

void open_received_bytes() {
    constexpr std::array<MPI_Count, 4> sizes = {0, 61, 4096, (MPI_Count{5} << 32) + 3};
    status_field_is_right = std::all_of(sizes.begin(), sizes.end(), [](MPI_Count bytes) {
        MPI_Status status{};
        PMPI_Status_set_elements_x(&status, MPI_BYTE, bytes);
        return received_bytes_field(status) == static_cast<std::size_t>(bytes);
    });
}

std::size_t asked_received_bytes(const MPI_Status& status) {
    MPI_Count bytes = 0;
    PMPI_Get_elements_x(&status, MPI_BYTE, &bytes);
    return bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

}  // namespace offpath::mpi::p2p
