#include "host_rank.h"

#include "memory/host_allocator.h"
#include "memory/staging_agent.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <stdexcept>

#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace offpath::memory::bench {

namespace {

constexpr std::uint64_t probe_word = 0x62656e63686d656d;
constexpr std::size_t bounces = 4;
constexpr std::size_t bounce_bytes = 1 << 20;

void check(Status status, const std::string& what) {
    if (status != Status::ok) throw std::runtime_error(what + ": " + to_string(status));
}

struct Landing : Completion {
    Landing() {
        function = [](Completion* self, Status with) { static_cast<Landing*>(self)->status = with; };
    }
    Status status = Status::ok;
};

void settle(SessionMemory& memory, const Landing& landing) {
    while (landing.status == Status::in_progress) {
        if (memory.progress() > 0 || memory.arm() != Status::ok) continue;
        pollfd ready{memory.event_fd(), POLLIN, 0};
        poll(&ready, 1, 1000);
    }
    check(landing.status, "a transfer");
}

}  // namespace

HostRank::HostRank(std::size_t bytes) : bounce_(new std::byte[bounces * bounce_bytes]) {
    void* memory[2];
    for (int i = 0; i < 2; ++i) {
        memory[i] = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory[i] == MAP_FAILED) throw std::runtime_error("no memory for the buffers");
        plain_[i] = reinterpret_cast<std::uintptr_t>(memory[i]);
    }
    SessionMemoryConfig config;
    config.client = "bench";
    config.general = GeneralBackEnd::staged;
    std::string problem;
    check(make_session_memory(std::move(config), staged_, problem), problem);
    StagingFiles files = staged_->take_staging_files();

    int ready[2];
    if (pipe(ready) != 0) throw std::runtime_error("pipe");
    pid_ = fork();
    if (pid_ < 0) throw std::runtime_error("fork");
    if (pid_ == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (void* const buffer : memory)
            std::memset(buffer, 1, bytes);
        std::unique_ptr<StagingAgent> agent;
        if (StagingAgent::start(std::move(files), agent, problem) != Status::ok) _exit(1);
        (void)!write(ready[1], "1", 1);
        for (;;)
            pause();
    }
    close(ready[1]);
    char byte = 0;
    const bool up = read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    for (void* const buffer : memory)
        munmap(buffer, bytes);
    if (!up) throw std::runtime_error("the host rank did not start");

    config = {};
    config.client = "bench";
    config.pid = pid_;
    config.probe_address = reinterpret_cast<std::uintptr_t>(&probe_word);
    config.probe_value = probe_word;
    check(make_session_memory(std::move(config), direct_, problem), problem);
    HostAllocator allocator;
    for (std::uint64_t i = 0; i < 2; ++i) {
        HostAllocator::Allocation allocation;
        check(allocator.allocate(bytes, allocation), "a shared buffer");
        check(direct_->add_region(i + 1, reinterpret_cast<std::uintptr_t>(allocation.address), bytes,
                                  File(dup(allocation.fd))),
              "a region");
    }
}

HostRank::~HostRank() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
}

void HostRank::copy(SessionMemory& memory, std::size_t bytes, std::size_t chunk) {
    chunk = std::min(chunk, bounce_bytes);
    Landing reads[bounces], writes[bounces];
    const HostRange from = plain(0, bytes), to = plain(1, bytes);
    const std::size_t chunks = (bytes + chunk - 1) / chunk;
    const auto length = [&](std::size_t i) { return std::min(chunk, bytes - i * chunk); };
    const auto read = [&](std::size_t i) {
        Landing& landing = reads[i % bounces];
        settle(memory, writes[i % bounces]);
        landing.status = Status::in_progress;
        const Status status =
            memory.read(from, i * chunk, bounce_.get() + i % bounces * bounce_bytes, length(i), &landing);
        if (status != Status::in_progress) landing.status = status;
    };
    for (std::size_t i = 0; i < std::min(bounces - 1, chunks); ++i)
        read(i);
    for (std::size_t i = 0; i < chunks; ++i) {
        if (i + bounces - 1 < chunks) read(i + bounces - 1);
        settle(memory, reads[i % bounces]);
        Landing& landing = writes[i % bounces];
        landing.status = Status::in_progress;
        const Status status =
            memory.write(to, i * chunk, bounce_.get() + i % bounces * bounce_bytes, length(i), &landing);
        if (status != Status::in_progress) landing.status = status;
    }
    for (const Landing& landing : writes)
        settle(memory, landing);
}

}  // namespace offpath::memory::bench
