// JointArea: what a program and its target host share, beside their line, for copies on which both work at
// the same time. The target host copies between its memory and the program's with one system call a piece,
// which is slower than memcpy. The program's thread that waits for the copy has nothing else to do, so it
// takes pieces as well. A side that starts late, or does not run, takes fewer of them, or none.
//
// Ownership: the area lies in the line's memory. Threads: any number on each side. Pairs: the host stores
// `state` with release after it has reset the other members; the program's exchange of `state` acquires that.
// The program adds to `copied` with release after each piece, and the host loads it with acquire.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace offpath::target {

class JointCopy {
  public:
    static constexpr std::uint64_t piece_bytes = 256 << 10;
    static constexpr std::uint64_t least_bytes = 512
                                                 << 10;  // a smaller copy is done before the other side comes

    struct Piece {
        std::uint64_t offset = 0, bytes = 0;
    };

    // Host: begins the next copy in this place. Returns its generation, which the program must know.
    std::uint32_t begin();
    // Takes the next piece of a copy of `bytes` bytes. False: none is left, or the copy is over.
    bool take(std::uint32_t generation, std::uint64_t bytes, Piece& piece);
    // Program: it has copied a piece that it took, or could not.
    void copied(std::uint64_t bytes) { copied_.fetch_add(bytes, std::memory_order_release); }
    void failed(std::uint64_t bytes) {
        failed_.store(1, std::memory_order_relaxed);
        copied(bytes);
    }
    // Host: bytes of the program's pieces that are done, and whether some of these were not copied.
    std::uint64_t copied() const { return copied_.load(std::memory_order_acquire); }
    bool failed() const { return failed_.load(std::memory_order_relaxed) != 0; }

  private:
    alignas(64) std::atomic<std::uint64_t> state_;  // generation << 32 | pieces taken
    alignas(64) std::atomic<std::uint64_t> copied_;
    std::atomic<std::uint32_t> failed_;
};

struct JointArea {
    static constexpr std::size_t places = 8;
    // A random number of the program. It knows the host's process by finding the number in that's memory.
    std::atomic<std::uint64_t> token;
    JointCopy copies[places];
};

}  // namespace offpath::target
