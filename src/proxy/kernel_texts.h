// KernelTexts: what a proxy tells one client about its kernels: lines that they print, and why they failed.
// Texts are sent in order, and at most control::max_kernel_texts of them before the client has taken them. So
// a client that does not read them cannot fill the socket, which also carries answers to its questions.
//
// Ownership: the session's KernelStreams. Threads: the proxy's.
#pragma once

#include "control/messages.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

namespace offpath::proxy {

class KernelTexts {
  public:
    using Send = std::function<void(const control::Message&)>;
    // Output that waits; failures may come on top of it.
    static constexpr std::size_t max_waiting = 16, max_failures = 64;

    explicit KernelTexts(Send send) : send_(std::move(send)) {}

    // Whether more output should be read.
    bool room() const { return waiting_.size() < max_waiting; }
    // Divides it between lines, and lines that are too long.
    void output(control::KernelTextKind kind, std::string_view text);
    // Drops the text if too many failures wait.
    void failure(std::string text);
    // Sends the answer after all texts before it.
    void answer(const control::KernelTextsAsked& question);
    // False: that is more than were sent, or less than were taken before.
    bool taken(std::uint64_t count);

  private:
    void flush();

    const Send send_;
    std::deque<control::Message> waiting_;
    std::uint64_t sent_ = 0, taken_ = 0;
};

}  // namespace offpath::proxy
