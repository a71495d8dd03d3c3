#include "host_process.h"

#include "memory/host_allocator.h"
#include "memory/staging_agent.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

namespace offpath::memory::test {

namespace {

enum class Order : std::uint64_t {
    probe,
    allocate,
    allocate_read_only,
    allocate_shared,
    allocate_shared_pages,
    fill,
    contents,
    start_agent,
    stop_agent,
    hide,
    sleep
};

struct Answer {
    std::uint64_t value = 0, region = 0, bytes = 0;
};

void send_with_files(int socket, const void* data, std::size_t bytes, const std::vector<int>& fds) {
    iovec part{const_cast<void*>(data), bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
        cmsghdr* const head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
        std::memcpy(CMSG_DATA(head), fds.data(), fds.size() * sizeof(int));
    }
    if (sendmsg(socket, &message, MSG_NOSIGNAL) != static_cast<ssize_t>(bytes))
        throw std::runtime_error("the host process does not listen");
}

bool receive_with_files(int socket, void* data, std::size_t bytes, std::vector<int>& fds) {
    iovec part{data, bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != static_cast<ssize_t>(bytes)) return false;
    for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
        fds.resize((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        std::memcpy(fds.data(), CMSG_DATA(head), fds.size() * sizeof(int));
    }
    return true;
}

volatile const std::uint64_t probe_word = 0x6f66667061746821;

}  // namespace

struct HostProcess::Command {
    Order order = Order::probe;
    std::uint64_t address = 0, bytes = 0, seed = 0;
};

namespace {

// The loop of the child.
template <typename Command>
[[noreturn]] void serve(int socket) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    HostAllocator allocator;
    File pages;
    std::unique_ptr<StagingAgent> agent;
    for (;;) {
        Command command;
        std::vector<int> fds;
        if (!receive_with_files(socket, &command, sizeof command, fds)) _exit(0);
        auto* const memory = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(command.address));
        Answer answer;
        std::vector<int> answer_fds;
        switch (command.order) {
            case Order::probe:
                (void)probe_word;  // a page that was never used would not be in memory
                answer.value = reinterpret_cast<std::uintptr_t>(&probe_word);
                break;
            case Order::allocate:
                answer.value = reinterpret_cast<std::uintptr_t>(std::calloc(1, command.bytes));
                break;
            case Order::allocate_read_only:
                answer.value = reinterpret_cast<std::uintptr_t>(
                    mmap(nullptr, command.bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
                break;
            case Order::allocate_shared: {
                HostAllocator::Allocation allocation;
                if (allocator.allocate(command.bytes, allocation) != Status::ok) _exit(3);
                answer = {reinterpret_cast<std::uintptr_t>(allocation.address), allocation.region,
                          allocation.bytes};
                answer_fds = {allocation.fd};
                break;
            }
            case Order::allocate_shared_pages: {
                void* const made =
                    mmap(nullptr, command.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                answer = {reinterpret_cast<std::uintptr_t>(made), 0, command.bytes};
                if (make_memory_file("pages", std::size_t{1} << 48, pages) != Status::ok ||
                    mmap(made, command.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, pages.get(),
                         static_cast<off_t>(answer.value)) != made)
                    _exit(3);
                answer_fds = {pages.get()};
                break;
            }
            case Order::fill:
                for (std::uint64_t i = 0; i < command.bytes; ++i)
                    memory[i] = pattern(command.seed, i);
                break;
            case Order::contents:
                if (agent != nullptr) (void)agent->served();
                break;
            case Order::start_agent: {
                std::string problem;
                answer.value = static_cast<std::uint64_t>(
                    StagingAgent::start({File(fds.at(0)), File(fds.at(1))}, agent, problem));
                break;
            }
            case Order::stop_agent:
                agent.reset();
                break;
            case Order::hide:
                prctl(PR_SET_DUMPABLE, 0);
                break;
            case Order::sleep:
                break;
        }
        send_with_files(socket, &answer, sizeof answer, answer_fds);
        if (command.order == Order::contents)
            for (std::uint64_t done = 0; done < command.bytes;) {
                const auto piece = std::min<std::uint64_t>(command.bytes - done, 64 << 10);
                if (send(socket, memory + done, piece, MSG_NOSIGNAL) != static_cast<ssize_t>(piece)) _exit(4);
                done += piece;
            }
        if (command.order == Order::sleep) pause();
    }
}

}  // namespace

HostProcess::HostProcess() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        throw std::runtime_error("socketpair");
    socket_ = File(ends[0]);
    pid_ = fork();
    if (pid_ == 0) {
        close(socket_.release());
        serve<Command>(ends[1]);
    }
    close(ends[1]);
    if (pid_ < 0) throw std::runtime_error("fork");
    probe_address_ = call({Order::probe});
    probe_value_ = probe_word;
}

HostProcess::~HostProcess() {
    kill();
}

void HostProcess::kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
}

std::uint64_t HostProcess::call(const Command& command, std::vector<int> fds) {
    send_with_files(socket_.get(), &command, sizeof command, fds);
    Answer answer;
    if (!receive_with_files(socket_.get(), &answer, sizeof answer, fds))
        throw std::runtime_error("the host process has ended");
    return answer.value;
}

std::uint64_t HostProcess::allocate(std::uint64_t bytes) {
    return call({Order::allocate, 0, bytes});
}
std::uint64_t HostProcess::allocate_read_only(std::uint64_t bytes) {
    return call({Order::allocate_read_only, 0, bytes});
}
void HostProcess::fill(std::uint64_t address, std::uint64_t bytes, std::uint64_t seed) {
    call({Order::fill, address, bytes, seed});
}
void HostProcess::stop_agent() {
    call({Order::stop_agent});
}
void HostProcess::hide() {
    call({Order::hide});
}
void HostProcess::stop_answering() {
    call({Order::sleep});
}

SharedMemory HostProcess::allocate_shared(std::uint64_t bytes) {
    return allocate_with_file({Order::allocate_shared, 0, bytes});
}

SharedMemory HostProcess::allocate_shared_pages(std::uint64_t bytes) {
    return allocate_with_file({Order::allocate_shared_pages, 0, bytes});
}

SharedMemory HostProcess::allocate_with_file(const Command& command) {
    send_with_files(socket_.get(), &command, sizeof command, {});
    Answer answer;
    std::vector<int> fds;
    if (!receive_with_files(socket_.get(), &answer, sizeof answer, fds))
        throw std::runtime_error("the host process has ended");
    return {answer.region, answer.value, answer.bytes, File(fds.at(0))};
}

std::vector<std::byte> HostProcess::contents(std::uint64_t address, std::uint64_t bytes) {
    call({Order::contents, address, bytes});
    std::vector<std::byte> data(bytes);
    for (std::uint64_t done = 0; done < bytes;) {
        const ssize_t got = recv(socket_.get(), data.data() + done, bytes - done, 0);
        if (got <= 0) throw std::runtime_error("the host process has ended");
        done += static_cast<std::uint64_t>(got);
    }
    return data;
}

Status HostProcess::start_agent(StagingFiles files) {
    return static_cast<Status>(call({Order::start_agent}, {files.area.get(), files.bell.get()}));
}

SessionMemoryConfig HostProcess::config(GeneralBackEnd general) const {
    SessionMemoryConfig config;
    config.client = "test rank";
    config.pid = pid_;
    config.probe_address = probe_address_;
    config.probe_value = probe_value_;
    config.general = general;
    config.staging_slots = 4;
    config.staging_slot_bytes = 16 << 10;
    return config;
}

void WithoutPtrace::set(bool may) {
    __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct sets[2]{};
    if (syscall(SYS_capget, &head, sets) != 0) throw std::runtime_error("capget");
    const std::uint32_t bit = CAP_TO_MASK(CAP_SYS_PTRACE);
    sets[0].effective = may ? sets[0].effective | (sets[0].permitted & bit) : sets[0].effective & ~bit;
    if (syscall(SYS_capset, &head, sets) != 0) throw std::runtime_error("capset");
}

std::byte pattern(std::uint64_t seed, std::uint64_t index) {
    return static_cast<std::byte>(((seed * 1315423911u + index) * 2654435761u) >> 13);
}

std::vector<std::byte> pattern_bytes(std::uint64_t seed, std::uint64_t bytes) {
    std::vector<std::byte> data(bytes);
    for (std::uint64_t i = 0; i < bytes; ++i)
        data[i] = pattern(seed, i);
    return data;
}

void wait_for(SessionMemory& memory, const Arrival& arrival) {
    for (int rounds = 0; arrival.calls == 0; ++rounds) {
        ASSERT_LT(rounds, 10000) << "no completion";
        if (memory.progress() > 0 || memory.arm() != Status::ok) continue;
        pollfd ready{memory.event_fd(), POLLIN, 0};
        if (poll(&ready, 1, 10000) == 0) FAIL() << "no wake-up in 10 s";
    }
}

Status read_all(SessionMemory& memory, const HostRange& range, std::uint64_t offset, void* to,
                std::size_t bytes) {
    Arrival arrival;
    const Status status = memory.read(range, offset, to, bytes, &arrival);
    if (status != Status::in_progress) return status;
    wait_for(memory, arrival);
    return arrival.status;
}

Status write_all(SessionMemory& memory, const HostRange& range, std::uint64_t offset, const void* from,
                 std::size_t bytes) {
    Arrival arrival;
    const Status status = memory.write(range, offset, from, bytes, &arrival);
    if (status != Status::in_progress) return status;
    wait_for(memory, arrival);
    return arrival.status;
}

}  // namespace offpath::memory::test
