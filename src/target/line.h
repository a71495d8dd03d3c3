// Line: a stream of bytes between a program and its target host, in both directions. shared_line.h is one
// over shared memory, tcp_line.h one over TCP.
//
// Threads: one thread at a time may write and one may read, both at the same time. Any number may sleep().
//
// Waking: a thread that reads in a loop calls attend(). Bytes that arrive then wake no thread. Before it does
// something else it calls leave(): bytes that are there, or arrive later, wake one of the threads in sleep().
#pragma once

#include "target/joint_copy.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace offpath::target {

// How long a thread sleeps on a line before it looks around: where something may come at any time, and where
// the other side is in the middle of a record.
constexpr std::uint64_t line_nap_ns = 100'000'000;
constexpr std::uint64_t record_nap_ns = 1'000'000;

class Line {
  public:
    virtual ~Line() = default;

    // Writes what there is room for and returns how much that was.
    virtual std::size_t write(std::span<const std::byte> data) = 0;
    // Reads what is there, and returns how much that was.
    virtual std::size_t read(std::span<std::byte> room) = 0;
    virtual bool readable() = 0;

    virtual void attend() = 0;
    virtual void leave() = 0;
    // Sleeps until there is something to read, there is room again after a write() that had none, wake() was
    // called, or the time is over. May end early.
    virtual void sleep(std::uint64_t limit_ns) = 0;
    // Wakes one thread in sleep().
    virtual void wake() = 0;

    // Whether the other side has read everything that was written. A record of a few bytes then fits.
    virtual bool drained() = 0;

    // Whether the other side has ended, or the connection has. What it wrote before can still be read.
    virtual bool lost() = 0;
    // After lost(): what the system says about the end of the connection; empty: nothing.
    virtual std::string cause() const { return {}; }
    // Memory of both sides for copies on which both work; null: they have none.
    virtual JointArea* joint() { return nullptr; }
    // Makes the other side find the line lost. Safe in a signal handler.
    virtual void hang_up() = 0;
};

}  // namespace offpath::target
