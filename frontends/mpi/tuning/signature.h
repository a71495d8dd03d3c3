// Signatures: what a run of a program has learned about its collectives, for its next run. A signature
// belongs to the program, the MPI, the numbers of ranks and nodes, and the platform, so it is used only where
// all of them are the same. docs/tuning.md has the format.
//
// Pure values, any thread. A row is trivially copyable: rank 0's rows go to all ranks as bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "refinement.h"

namespace offpath::mpi {

// The sizes between two powers of two are one class.
unsigned size_class(std::uint64_t bytes);

// Of one operation and class of sizes, on communicators of one shape.
struct LearnedRow {
    Op op = Op::ialltoall;
    TeamShape shape;
    std::uint64_t bytes = 0;  // one of the class
    std::uint64_t calls = 0;
    Remembered what;
};

// Null: there is none.
const LearnedRow* find_row(std::span<const LearnedRow> rows, Op op, const TeamShape& shape,
                           std::uint64_t bytes);
// Puts a row in the place of the one for the same calls. Among communicators of one run, the one with more
// calls counts.
void put(std::vector<LearnedRow>& rows, const LearnedRow& row, bool only_if_more_calls);

// What a signature belongs to.
struct SignatureKey {
    std::string name;     // of the program's file, for human readers
    std::string content;  // of the program, and of its script (program.h)
    std::string mpi;
    std::string platform;
    std::uint32_t ranks = 0, nodes = 0;

    // Names the signature's file: a hash of all but `name`, in hexadecimal digits.
    std::string id() const;
};

struct Signature {
    SignatureKey key;
    std::uint64_t runs = 0;  // that have contributed
    std::vector<LearnedRow> rows;

    // `when`: now, for human readers.
    std::string to_json(const std::string& when) const;
    // Throws std::invalid_argument, which says what is wrong where, and what is accepted.
    static Signature parse(const std::string& json);
};

// BLAKE2b of 16 bytes, in hexadecimal digits.
std::string digest(std::span<const char> bytes);

}  // namespace offpath::mpi
