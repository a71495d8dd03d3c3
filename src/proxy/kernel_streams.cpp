#include "proxy/kernel_streams.h"

#include <fmt/format.h>

#include <algorithm>

namespace offpath::proxy {

KernelStreams::KernelStreams(const kernel_host::HostConfig& config, std::uint32_t seconds, const Clock& clock,
                             int epoll, memory::SessionMemory& memory, std::string client,
                             KernelTexts::Send send)
    : config_(config),
      seconds_(seconds),
      clock_(clock),
      epoll_(epoll),
      memory_(memory),
      client_(std::move(client)),
      texts_(std::move(send)) {}

KernelJobs* KernelStreams::stream_of(std::uint64_t kernel) const {
    for (const auto& stream : streams_)
        if (stream != nullptr && stream->knows(kernel)) return stream.get();
    return nullptr;
}

Status KernelStreams::load(const control::LoadKernel& kernel, KernelJobs::Answer answer) {
    if (knows(kernel.id)) return Status::invalid;
    std::unique_ptr<KernelJobs>& stream = streams_.at(kernel.stream);
    if (stream == nullptr)
        stream = std::make_unique<KernelJobs>(
            config_, seconds_, clock_, epoll_, memory_, texts_,
            kernel.stream == 0 ? client_ : fmt::format("{}, stream {}", client_, kernel.stream));
    return stream->load(kernel, std::move(answer));
}

Status KernelStreams::run(std::uint64_t kernel, std::span<const engine::KernelBuffer> buffers,
                          std::span<const std::byte> arguments, Completion* done) {
    KernelJobs* const stream = stream_of(kernel);
    return stream == nullptr ? Status::invalid : stream->run(kernel, buffers, arguments, done);
}

bool KernelStreams::take_back(const Completion* done) {
    return std::any_of(streams_.begin(), streams_.end(),
                       [done](const auto& stream) { return stream != nullptr && stream->take_back(done); });
}

void KernelStreams::unload(std::uint64_t kernel) {
    if (KernelJobs* const stream = stream_of(kernel); stream != nullptr) stream->unload(kernel);
}

void KernelStreams::region_gone(std::uint64_t region) {
    for (const auto& stream : streams_)
        if (stream != nullptr) stream->region_gone(region);
}

unsigned KernelStreams::progress() {
    unsigned work = 0;
    for (const auto& stream : streams_)
        if (stream != nullptr) work += stream->progress();
    if (question_) answer_question();
    return work;
}

bool KernelStreams::has_work() const {
    return std::any_of(streams_.begin(), streams_.end(),
                       [](const auto& stream) { return stream != nullptr && stream->has_work(); });
}

bool KernelStreams::busy() const {
    return std::any_of(streams_.begin(), streams_.end(),
                       [](const auto& stream) { return stream != nullptr && stream->host_busy(); });
}

std::uint64_t KernelStreams::deadline_ns() const {
    std::uint64_t first = UINT64_MAX;
    for (const auto& stream : streams_)
        if (stream != nullptr) first = std::min(first, stream->deadline_ns());
    return first;
}

bool KernelStreams::event(int fd) {
    return std::any_of(streams_.begin(), streams_.end(),
                       [fd](const auto& stream) { return stream != nullptr && stream->event(fd); });
}

void KernelStreams::asked(const control::KernelTextsAsked& question) {
    question_ = question;
    for (const auto& stream : streams_)
        if (stream != nullptr) stream->output().owe();
    answer_question();
}

void KernelStreams::answer_question() {
    for (const auto& stream : streams_)
        if (stream != nullptr && stream->output().owes()) return;
    for (const auto& stream : streams_)
        if (stream != nullptr) stream->output().pass_rest();
    texts_.answer(*question_);
    question_.reset();
}

void KernelStreams::stop(Status reason) {
    question_.reset();
    for (const auto& stream : streams_)
        if (stream != nullptr) stream->stop(reason);
}

bool KernelStreams::closed() {
    bool all = true;
    for (const auto& stream : streams_)
        all &= stream == nullptr || stream->closed();
    return all;
}

}  // namespace offpath::proxy
