#include "proxy/status_page.h"

#include "base/clock.h"
#include "base/file_size.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>

namespace offpath::proxy {
namespace {

constexpr std::size_t first_part = 4096;  // the daemon's own words are before it

}  // namespace

StatusPage::~StatusPage() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
}

Status StatusPage::open(const std::string& node, std::uint32_t proxies, std::string& problem) {
    bytes_ = first_part + proxies * sizeof(ShownProxy);
    file_ = FileDescriptor(memfd_create(status_page_name, MFD_CLOEXEC));
    void* const mapped = file_ && set_file_bytes(file_.get(), bytes_)
                             ? mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0)
                             : MAP_FAILED;
    if (mapped == MAP_FAILED) {
        problem = std::string("no memory for what offpath top shows: ") + std::strerror(errno);
        file_.reset();
        return Status::system;
    }
    memory_ = static_cast<std::byte*>(mapped);
    for (std::uint32_t i = 0; i < proxies; ++i)
        new (part(i)) ShownProxy{};
    auto* const daemon = new (memory_) ShownDaemon{};
    daemon->proxies = proxies;
    daemon->process = static_cast<std::uint64_t>(getpid());
    daemon->started_ns = SteadyClock().now_ns();
    node.copy(daemon->node, sizeof daemon->node - 1);
    std::atomic_ref(daemon->magic).store(status_page_magic, std::memory_order_release);
    return Status::ok;
}

ShownProxy* StatusPage::part(std::uint32_t proxy) {
    if (memory_ == nullptr) return nullptr;
    return reinterpret_cast<ShownProxy*>(memory_ + first_part + proxy * sizeof(ShownProxy));
}

void begin_showing(ShownProxy& part) {
    std::atomic_ref(part.sequence).fetch_add(1, std::memory_order_acq_rel);
}

void end_showing(ShownProxy& part) {
    std::atomic_ref(part.sequence).fetch_add(1, std::memory_order_release);
}

void show_session(ShownSession& shown, std::string_view name, std::uint64_t started,
                  std::uint64_t outstanding) {
    const std::size_t length = std::min(name.size(), sizeof shown.name);
    name.copy(shown.name, length);
    std::memset(shown.name + length, 0, sizeof shown.name - length);
    shown.started = started;
    shown.outstanding = outstanding;
}

}  // namespace offpath::proxy
