#include "proxy/kernel_texts.h"

#include <algorithm>

namespace offpath::proxy {

void KernelTexts::output(control::KernelTextKind kind, std::string_view text) {
    while (!text.empty()) {
        std::size_t size = std::min(text.size(), control::max_kernel_text_bytes);
        if (const std::size_t last = text.substr(0, size).rfind('\n'); last != std::string_view::npos)
            size = last + 1;
        waiting_.emplace_back(control::KernelText{kind, std::string(text.substr(0, size))});
        text.remove_prefix(size);
    }
    flush();
}

void KernelTexts::failure(std::string text) {
    if (waiting_.size() >= max_waiting + max_failures) return;
    waiting_.emplace_back(control::KernelText{control::KernelTextKind::failure, std::move(text)});
    flush();
}

void KernelTexts::answer(const control::KernelTextsAsked& question) {
    waiting_.emplace_back(question);
    flush();
}

bool KernelTexts::taken(std::uint64_t count) {
    if (count > sent_ || count < taken_) return false;
    taken_ = count;
    flush();
    return true;
}

void KernelTexts::flush() {
    while (!waiting_.empty()) {
        const bool counts = std::holds_alternative<control::KernelText>(waiting_.front());
        if (counts && sent_ - taken_ >= control::max_kernel_texts) return;
        const control::Message message = std::move(waiting_.front());
        waiting_.pop_front();
        if (counts) ++sent_;
        send_(message);
    }
}

}  // namespace offpath::proxy
