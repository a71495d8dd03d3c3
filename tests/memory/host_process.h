// A host rank for tests: a child process with memory of its own, which obeys the test over a socket. Fork it
// while the test has no other threads.
#pragma once

#include "memory/host_memory.h"
#include "memory/session_memory.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <sys/types.h>

namespace offpath::memory::test {

// A region as the host rank allocated it; `file` is this process's own descriptor.
struct SharedMemory {
    std::uint64_t region = 0, address = 0, bytes = 0;
    File file;
};

class HostProcess {
  public:
    HostProcess();
    ~HostProcess();
    HostProcess(const HostProcess&) = delete;
    HostProcess& operator=(const HostProcess&) = delete;

    pid_t pid() const { return pid_; }
    // The address of a word with a known value, for the probe.
    std::uint64_t probe_address() const { return probe_address_; }
    std::uint64_t probe_value() const { return probe_value_; }

    std::uint64_t allocate(std::uint64_t bytes);            // plain memory
    std::uint64_t allocate_read_only(std::uint64_t bytes);  // zeroed
    SharedMemory allocate_shared(std::uint64_t bytes);
    // Whole pages that lie in a file at their address (SharedPages). The region is 0.
    SharedMemory allocate_shared_pages(std::uint64_t bytes);
    void fill(std::uint64_t address, std::uint64_t bytes, std::uint64_t seed);
    std::vector<std::byte> contents(std::uint64_t address, std::uint64_t bytes);
    Status start_agent(StagingFiles files);
    void stop_agent();
    // It becomes a process that others may neither trace nor read.
    void hide();
    // The process sleeps in this call until it is killed.
    void stop_answering();
    void kill();

    // What a proxy would learn about this process.
    SessionMemoryConfig config(GeneralBackEnd general) const;

  private:
    struct Command;
    SharedMemory allocate_with_file(const Command& command);
    std::uint64_t call(const Command& command, std::vector<int> fds = {});
    File socket_;
    pid_t pid_ = -1;
    std::uint64_t probe_address_ = 0, probe_value_ = 0;
};

std::byte pattern(std::uint64_t seed, std::uint64_t index);
std::vector<std::byte> pattern_bytes(std::uint64_t seed, std::uint64_t bytes);

// While it lives, this thread may not trace every process.
class WithoutPtrace {
  public:
    WithoutPtrace() { set(false); }
    ~WithoutPtrace() { set(true); }
    WithoutPtrace(const WithoutPtrace&) = delete;
    WithoutPtrace& operator=(const WithoutPtrace&) = delete;

  private:
    static void set(bool may);
};

// Counts its calls and keeps the status. For a single operation.
struct Arrival : Completion {
    Arrival() {
        function = [](Completion* self, Status with) {
            static_cast<Arrival*>(self)->status = with;
            ++static_cast<Arrival*>(self)->calls;
        };
    }
    Status status = Status::in_progress;
    int calls = 0;
};

// Progresses the memory until `arrival` was called or 10 s have passed; sleeps in between as a proxy does.
void wait_for(SessionMemory& memory, const Arrival& arrival);
// Reads or writes everything, whatever the back end.
Status read_all(SessionMemory& memory, const HostRange& range, std::uint64_t offset, void* to,
                std::size_t bytes);
Status write_all(SessionMemory& memory, const HostRange& range, std::uint64_t offset, const void* from,
                 std::size_t bytes);

}  // namespace offpath::memory::test
