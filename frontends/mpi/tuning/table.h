// Measured costs of operations on the host's MPI and on the device: the file that `offpath tune` writes and
// rank 0 reads in MPI_Init. docs/tuning.md has the format.
//
// Pure values, any thread. A row is trivially copyable: rank 0's rows go to all ranks as bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/selection.h"

namespace offpath::mpi {

// One way of executing an operation.
struct Cost {
    double pure_s = 0;   // posted and waited for at once; the slowest rank's median
    double overlap = 0;  // the share of it that a computation as long as the host's pure time hides, 0 to 1
};

// How many ranks an operation spans, on how many nodes. More ranks per node are more load on its device.
struct TeamShape {
    std::uint32_t ranks = 0;
    std::uint32_t nodes = 0;

    bool operator==(const TeamShape&) const = default;
};

struct TableRow {
    Op op = Op::ialltoall;
    TeamShape shape;
    std::uint64_t bytes = 0;  // the bytes by which the operation is decided: see Selection::threshold
    Cost host, device;
};

class Table {
  public:
    Table() = default;
    // Sorts the rows. Equal (op, shape, bytes) must not occur twice.
    explicit Table(std::vector<TableRow> rows);

    // Throws std::invalid_argument, which says what is wrong where, and what is accepted.
    static Table parse(const std::string& json);
    // The same for a file; the error names the file.
    static Table read(const std::string& path);

    const std::vector<TableRow>& rows() const { return rows_; }
    bool empty() const { return rows_.empty(); }

    // The rows of `op`, in ascending order of bytes, for the measured shape that is nearest to `shape`. Empty
    // if no shape is comparable: a shape inside a node is not comparable to one across nodes.
    std::vector<TableRow> nearest(Op op, const TeamShape& shape) const;

  private:
    std::vector<TableRow> rows_;
};

}  // namespace offpath::mpi
