// Turns: several programs stay alive and measure one after the other, batch by batch. If the machine's speed
// changes, it then changes for all of them. The programs share a file; a program whose turn it is not sleeps.
// Owns its mapping of the file. One thread per process.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace mpi_bench {

class Turns {
  public:
    // For a single program, which always has the turn.
    Turns() = default;
    // The `mine`-th of `programs` (> 0) that share `file`. The file exists; it is empty, or the others
    // already use it. Throws std::system_error.
    Turns(const std::string& file, std::uint32_t mine, std::uint32_t programs);
    ~Turns();
    Turns(const Turns&) = delete;
    Turns& operator=(const Turns&) = delete;

    // Sleeps until it is this program's turn. `members` processes of each program call it, all equally often.
    // Throws std::runtime_error if another program keeps its turn for a minute.
    void take();
    // Passes the turn on when all `members` processes have called it.
    void give(std::uint32_t members);

  private:
    struct Shared {
        std::atomic<std::uint32_t> turn, given;
    };
    Shared* shared_ = nullptr;
    std::uint32_t mine_ = 0, programs_ = 1;
};

}  // namespace mpi_bench
