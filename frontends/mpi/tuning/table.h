// What operations were measured to cost on the host's MPI and on the device: the file that `offpath tune`
// writes and rank 0 reads in MPI_Init. docs/tuning.md has the format.
//
// Pure values, any thread. A row is trivially copyable: rank 0's rows go to all ranks as bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../selection.h"

namespace offpath::mpi {

// One way of doing an operation.
struct Cost {
    double pure_s = 0;   // posted and waited for at once; the slowest rank's median
    double overlap = 0;  // the share of it that a computation as long as the host's pure time hides, 0 to 1
};

// How many ranks an operation spans, on how many nodes: more ranks a node are more load on its device.
struct TeamShape {
    std::uint32_t ranks = 0;
    std::uint32_t nodes = 0;

    bool operator==(const TeamShape&) const = default;
};

struct TableRow {
    Op op = Op::ialltoall;
    TeamShape shape;
    std::uint64_t bytes = 0;  // what the operation is decided by: see Selection::threshold
    Cost host, device;
};

class Table {
  public:
    Table() = default;
    // Sorts them. Equal (op, shape, bytes) must not occur twice.
    explicit Table(std::vector<TableRow> rows);

    // Throws std::invalid_argument: what is wrong where, and what is accepted.
    static Table parse(const std::string& json);
    // The same for a file, which the error names.
    static Table read(const std::string& path);

    const std::vector<TableRow>& rows() const { return rows_; }
    bool empty() const { return rows_.empty(); }

    // The rows of `op`, by growing bytes, for the shape measured that is nearest to `shape`; none when no
    // shape is comparable: inside a node and between nodes are different things.
    std::vector<TableRow> nearest(Op op, const TeamShape& shape) const;

  private:
    std::vector<TableRow> rows_;
};

}  // namespace offpath::mpi
