// KernelStreams: the kernels of one session. Kernels of one stream run one after the other, in one process;
// streams run side by side, each in a process of its own. A stream is made for its first kernel.
//
// Schedules start kernels through engine::Kernels, commands of the client directly. What the kernels print,
// and why they fail, is sent to the client.
//
// Ownership: the session; it borrows the session's memory. Threads: the proxy's. Life: as KernelJobs.
#pragma once

#include "proxy/kernel_jobs.h"

#include <array>
#include <optional>

namespace offpath::proxy {

class KernelStreams final : public engine::Kernels {
  public:
    // `epoll`, `seconds`: as KernelJobs. `send` sends a message to the client.
    KernelStreams(const kernel_host::HostConfig& config, std::uint32_t seconds, const Clock& clock, int epoll,
                  memory::SessionMemory& memory, std::string client, KernelTexts::Send send);

    // invalid: too many kernels, or the number is in use.
    Status load(const control::LoadKernel& kernel, KernelJobs::Answer answer);
    bool knows(std::uint64_t kernel) const { return stream_of(kernel) != nullptr; }
    // engine::Kernels; invalid: no such kernel.
    Status run(std::uint64_t kernel, std::span<const engine::KernelBuffer> buffers,
               std::span<const std::byte> arguments, Completion* done) override;
    bool take_back(const Completion* done) override;
    void unload(std::uint64_t kernel);
    void region_gone(std::uint64_t region);

    unsigned progress();
    // Whether progress() has work without an event.
    bool has_work() const;
    // Whether a host is working.
    bool busy() const;
    // When progress() must be called although no event has come; UINT64_MAX: never.
    std::uint64_t deadline_ns() const;
    // Whether the descriptor belongs to a stream, and then takes note of its event.
    bool event(int fd);

    // Messages of the client. False: it has taken more texts than were sent.
    bool taken(const control::KernelTextsTaken& message) { return texts_.taken(message.count); }
    void asked(const control::KernelTextsAsked& question);

    // As KernelJobs.
    void stop(Status reason);
    bool closed();

  private:
    KernelJobs* stream_of(std::uint64_t kernel) const;
    void answer_question();

    const kernel_host::HostConfig config_;
    const std::uint32_t seconds_;
    const Clock& clock_;
    const int epoll_;
    memory::SessionMemory& memory_;
    const std::string client_;
    KernelTexts texts_;
    std::array<std::unique_ptr<KernelJobs>, control::max_kernel_streams> streams_;  // null: not used yet
    std::optional<control::KernelTextsAsked> question_;
};

}  // namespace offpath::proxy
