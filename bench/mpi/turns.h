// Turns: programs that measure one after the other, batch by batch, while all of them stay alive. A machine
// whose speed changes from second to second then changes under all of them alike. The programs share a file;
// who is not at turn sleeps. Owns its mapping of the file. One thread per process.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace mpi_bench {

class Turns {
  public:
    // Nobody to take turns with.
    Turns() = default;
    // The `mine`-th of `programs` (> 0) that share `file`, which exists and is empty or in use by the others.
    // Throws std::system_error.
    Turns(const std::string& file, std::uint32_t mine, std::uint32_t programs);
    ~Turns();
    Turns(const Turns&) = delete;
    Turns& operator=(const Turns&) = delete;

    // Sleeps until it is this program's turn. To be called by `members` processes of each program, as often
    // as the others. Throws std::runtime_error when another program keeps its turn for a minute.
    void take();
    // Gives the turn on when all `members` processes have called it.
    void give(std::uint32_t members);

  private:
    struct Shared {
        std::atomic<std::uint32_t> turn, given;
    };
    Shared* shared_ = nullptr;
    std::uint32_t mine_ = 0, programs_ = 1;
};

}  // namespace mpi_bench
