#include "client/context.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/lost_device.h"
#include "base/pause.h"
#include "client/traced.h"

#include <offpath/loss.h>

#include <sched.h>

#include <algorithm>

using namespace offpath;
using namespace offpath::client;

namespace {

constexpr std::uint64_t check_interval_ns = 100'000'000;
// The link may break before the daemon's refusal has arrived over the line.
constexpr int last_words_ms = 100;

}  // namespace

offpath_context::offpath_context(Attachment made, bool threads, std::uint64_t spin_us)
    : attachment(std::move(made)),
      requests(*attachment.channel),
      schedules(*this),
      huge_pages(attachment.welcome.back_end == OFFPATH_BACK_END_CMA ? memory::HugePages::system_page() : 0),
      threads_(threads),
      spin_ns_(spin_us * 1000) {
    checked_ns_ = now_ns();
    if (attachment.link == nullptr && attachment.welcome.back_end == OFFPATH_BACK_END_CMA)
        pages_ = &memory::PageSharing::of_process();
}

offpath_context::~offpath_context() {
    if (pages_ != nullptr) pages_->release(this);
}

Status offpath_context::post(const control::Command& command) {
    // Before an operation that may use that memory for something else.
    for (memory::PageRange pages; pages_ != nullptr && pages_->has_gone() && pages_->take_gone(this, pages);)
        if (Status status = post_one(control::ForgetPages{pages.begin, pages.end - pages.begin});
            status != Status::ok)
            return status;
    return post_one(command);
}

Status offpath_context::post_one(const control::Command& command) {
    if (lost_.load(std::memory_order_acquire)) return Status::peer_lost;
    while (channel().post(command) == Status::retry) {
        sched_yield();
        if (lost_locked()) return Status::peer_lost;
    }
    return Status::ok;
}

Status offpath_context::new_request(offpath_request** request) {
    while (true) {
        if (lost_.load(std::memory_order_acquire)) return Status::peer_lost;
        if (*request = requests.start(this); *request != nullptr) return Status::ok;
        const std::uint32_t sequence = channel().enter_wait();
        if (*request = requests.start(this); *request == nullptr) channel().sleep(sequence, sleep_ns);
        channel().leave_wait();
        if (*request != nullptr) return Status::ok;
        lost_locked();
    }
}

Status offpath_context::start(offpath_team& team, const RegisteredSchedule& schedule,
                              std::span<const control::BufferRange> buffers,
                              std::span<const offpath_request::Used> used, std::unique_ptr<std::byte[]> owned,
                              offpath_request** request) {
    constexpr std::size_t most = control::max_part_bytes / sizeof(control::BufferRange);
    offpath_request* made = nullptr;
    if (Status status = new_request(&made); status != Status::ok) return status;
    made->owned = std::move(owned);
    made->used.assign(used.begin(), used.end());
    for (std::size_t i = 0; i < std::min(used.size(), buffers.size()); ++i)
        if (buffers[i].region == 0) note_use(*made, i, schedule.whole[i]);
    // A remote device cannot see which parts this process has made.
    if (schedule.shared_bytes > 0 && attachment.link == nullptr) {
        const auto at = [&](const schedule::BufferRef& place) {
            return reinterpret_cast<std::byte*>(used[place.slot].begin + place.offset);
        };
        made->shared = {at(schedule.shared_to), at(schedule.shared_from), schedule.shared_bytes};
    }
    control::Start command;
    command.schedule = schedule.id;
    command.team = team.id;
    command.sequence = team.sequence;
    command.completion = made->slot;
    command.buffers = static_cast<std::uint32_t>(buffers.size());
    if (trace::on()) [[unlikely]]
        trace_start(team, team.sequence, schedule, *made);
    std::size_t first = 0;
    do {
        const std::size_t count = std::min(most, buffers.size() - first);
        command.first = static_cast<std::uint32_t>(first);
        command.ranges = pack(buffers.subspan(first, count));
        if (Status status = post(command); status != Status::ok) {
            requests.undo(made);
            return status;
        }
        first += count;
    } while (first < buffers.size());
    ring();
    ++team.sequence;
    ++operations;
    bytes += schedule.bytes_sent;
    *request = made;
    return Status::ok;
}

control::BufferRange offpath_context::resolve(const void* address, std::uint64_t length) const {
    const memory::HostRange range = allocator.table().resolve(address, length);
    if (range.region == 0 && pages_ != nullptr) pages_->check(range.address, range.address + range.bytes);
    return {range.region, range.address, range.bytes};
}

Status offpath_context::test(offpath_request& request) {
    if (const Status seen = request.seen(); seen != Status::in_progress) return seen;
    if (requests.pending(request)) {
        send_bundles();
        // A program that only tests, and never waits, must notice a lost proxy too.
        if ((idle_tests_.fetch_add(1, std::memory_order_relaxed) & 31) != 31 || !lost())
            return Status::in_progress;
    }
    return take(request);
}

Status offpath_context::wait(offpath_request& request) {
    if (const Status seen = request.seen(); seen != Status::in_progress) return seen;
    if (!requests.pending(request)) return take(request);
    const trace::Span waiting(trace::Kind::wait);
    send_bundles();
    spin(request);
    while (requests.pending(request))
        if (!help(request)) sleep_while_pending(request, requests.may_help(request) ? help_ns : sleep_ns);
    return take(request);
}

Status offpath_context::wait_for(offpath_request& request, std::uint64_t limit_ns) {
    if (const Status seen = request.seen(); seen != Status::in_progress) return seen;
    send_bundles();
    const std::uint64_t end_ns = now_ns() + std::min(limit_ns, std::uint64_t{1} << 62);
    for (std::uint64_t now = now_ns(); requests.pending(request); now = now_ns()) {
        const bool helped = help(request);
        if (now >= end_ns) return Status::in_progress;
        if (helped) continue;
        sleep_while_pending(request, std::min(sleep_ns, end_ns - now));
    }
    return take(request);
}

// Another rank may do what is waited for only when it has seen them.
void offpath_context::send_bundles() {
    if (direct == nullptr || !direct->has_bundles()) return;
    auto guard = lock();
    direct->send_bundles();
}

// Under the lock, so that no other thread takes the completion meanwhile and gives the slot to a new
// operation.
bool offpath_context::help(offpath_request& request) {
    if (request.shared.bytes > 0) {
        auto guard = lock();
        if (requests.help(request)) return true;
    }
    return request.large && make_huge_page(request);
}

bool offpath_context::make_huge_page(const offpath_request& request) {
    auto guard = lock();
    if (request.seen() != Status::in_progress) return false;
    for (const offpath_request::Used& used : request.used) {
        const std::uintptr_t begin = used.begin, end = used.end, page = huge_pages.next(begin, end);
        if (page == 0) continue;
        if (guard.owns_lock()) guard.unlock();
        const int error = huge_pages.make(page);
        if (guard.mutex() != nullptr) guard.lock();
        huge_pages.made(begin, end, error);
        return true;
    }
    return false;
}

void offpath_context::spin(offpath_request& request) {
    const std::uint64_t start_ns = now_ns();
    const bool progresses = channel().begin_progress();
    do {
        for (int i = 0; i < 32 && requests.pending(request); ++i)
            pause_cpu();
        if (requests.may_help(request)) help(request);
        if (progresses) channel().progress();
    } while (requests.pending(request) && now_ns() - start_ns <= spin_ns_);
    if (progresses) channel().end_progress();
}

// Sleeps once, and may return early. Checks whether the proxy is lost.
void offpath_context::sleep_while_pending(offpath_request& request, std::uint64_t limit_ns) {
    const std::uint32_t sequence = channel().enter_wait();
    if (requests.pending(request)) channel().sleep(sequence, limit_ns);
    channel().leave_wait();
    if (requests.pending(request)) lost();
}

void offpath_context::note_use(offpath_request& request, std::size_t place, bool all) {
    offpath_request::Used& used = request.used[place];
    request.large |= huge_pages.used(used.begin, used.end);
    used.shares = all && pages_ != nullptr && pages_->used(used.begin, used.end);
}

Status offpath_context::take(offpath_request& request) {
    std::vector<memory::PageRange> pages;
    auto guard = lock();
    if (requests.succeeds(request)) pages = share_pages(request);
    requests.take(&request);
    if (pages.empty()) return request.seen();
    if (guard.owns_lock()) guard.unlock();
    tell_of_pages(pages);
    return request.seen();
}

// The operation has ended, and no caller knows yet. So nobody writes into its buffers.
std::vector<memory::PageRange> offpath_context::share_pages(const offpath_request& request) {
    std::vector<memory::PageRange> pages;
    if (!windows.empty()) return pages;  // other ranks may write into memory of this one
    for (const offpath_request::Used& used : request.used) {
        if (!used.shares || !pages_->claim(this, pages)) continue;
        const memory::PageRange shared = pages_->share(used.begin, used.end);
        if (shared.begin != shared.end) pages.push_back(shared);
    }
    return pages;
}

void offpath_context::tell_of_pages(std::span<const memory::PageRange> pages) {
    const int file = pages_->file();
    for (const memory::PageRange& each : pages) {
        control::RegionReply reply;
        const control::SharePages question{each.begin, each.begin, each.end - each.begin};
        if (ask(question, std::span(&file, 1), each.begin, reply) != Status::ok) return;
        if (reply.status != Status::ok) pages_->refused(each);
        if (pages_->has(each)) continue;
        // They have ended meanwhile, and the device may have been told of that first.
        auto guard = lock();
        (void)post(control::ForgetPages{each.begin, each.end - each.begin});
    }
}

bool offpath_context::proxy_gone() {
    const std::uint64_t now = now_ns();
    std::uint64_t last = checked_ns_.load(std::memory_order_relaxed);
    if (now - last < check_interval_ns) return false;
    if (!checked_ns_.compare_exchange_strong(last, now)) return false;
    std::string why;
    return attachment.line->closed() || channel().lost(why);
}

bool offpath_context::lost() {
    if (lost_.load(std::memory_order_acquire)) return true;
    if (!proxy_gone()) return false;
    auto guard = lock();
    declare_lost();
    return true;
}

bool offpath_context::lost_locked() {
    if (!lost_.load(std::memory_order_acquire) && proxy_gone()) declare_lost();
    return lost_.load(std::memory_order_acquire);
}

// Without local attach only threads of this process write into its memory, and they have ended. A device's
// network card writes into exported memory by itself. A daemon that has closed the line in an orderly way
// still exists, so only its death is proof.
pid_t offpath_context::daemon_that_may_write() const {
    if (attachment.link != nullptr)
        return attachment.exports != nullptr ? lost_device::unknown : lost_device::nobody;
    return attachment.daemon > 0 ? attachment.daemon : lost_device::unknown;
}

void offpath_context::declare_lost() {
    if (lost_.exchange(true, std::memory_order_acq_rel)) return;
    std::string why = attachment.line->why();
    (void)channel().lost(why);
    channel().abandon();
    // A daemon that was only stopped may continue, and its last requests are still in the agent's area.
    attachment.agent.reset();
    if (std::unique_lock socket_guard(socket_mutex_, std::try_to_lock); socket_guard.owns_lock()) {
        control::Message message;
        std::string problem;
        if (attachment.line->receive(last_words_ms, message, problem) == Status::ok) {
            if (const auto* refusal = std::get_if<control::Refusal>(&message)) why = refusal->text;
        }
    }
    lost_device::record(daemon_that_may_write());
    const std::uint32_t failed = requests.fail_all(Status::peer_lost);
    channel().wake_waiters();
    log::error(
        Code::device_lost,
        "rank {} lost proxy {} on node {} (offpathd at {}, pid {}): {}; it had {} operations in flight", rank,
        attachment.welcome.proxy_index, attachment.welcome.node, attachment.device,
        attachment.welcome.daemon_pid, why, failed);
}

Status offpath_context::end_session(int timeout_ms) {
    if (attachment.link != nullptr) return Status::unsupported;
    if (!lost()) {
        // The daemon hangs up once it has released our memory. If it dies meanwhile, that does too.
        if (attachment.line->send(control::Goodbye{}) == Status::ok &&
            !attachment.line->wait_closed(timeout_ms))
            return Status::unsupported;
        lost_.store(true, std::memory_order_release);
        auto guard = lock();
        channel().abandon();
        attachment.agent.reset();
        requests.fail_all(Status::peer_lost);
        return Status::ok;
    }
    if (offpath_context_device_state(this) == OFFPATH_DEVICE_ENDED ||
        offpath_context_end_stopped_device(this) == OFFPATH_OK)
        return Status::ok;
    return Status::unsupported;
}

template <typename Take>
Status offpath_context::ask_until(const control::Message& question, std::span<const int> descriptors,
                                  Take&& take) {
    std::unique_lock socket_guard(socket_mutex_);
    if (lost_.load(std::memory_order_acquire)) return Status::peer_lost;
    Status status = attachment.line->send(question, descriptors);
    std::string problem;
    while (status == Status::ok) {
        control::Message message;
        status = attachment.line->receive(500, message, problem);
        // There is no answer yet: the device releases a region after the last transfer that uses it, and
        // loads a kernel after the kernels before it have run.
        if (status == Status::unavailable) {
            status = channel().lost(problem) ? Status::peer_lost : Status::ok;
        } else if (status == Status::ok) {
            if (take(message)) return Status::ok;
            const auto* refusal = std::get_if<control::Refusal>(&message);
            problem = refusal != nullptr ? refusal->text : "an unexpected message";
            status = Status::peer_lost;
        }
    }
    log::error(Code::device_lost, "rank {} has no answer from its proxy on node {} (offpathd at {}): {}",
               rank, attachment.welcome.node, attachment.device,
               problem.empty() ? to_string(status) : problem);
    return Status::peer_lost;
}

Status offpath_context::ask(const control::Message& question, std::span<const int> descriptors,
                            std::uint64_t region, control::RegionReply& reply) {
    return ask_until(question, descriptors, [&](const control::Message& message) {
        const auto* answer = std::get_if<control::RegionReply>(&message);
        if (answer == nullptr || answer->id != region) return false;
        reply = *answer;
        return true;
    });
}

Status offpath_context::ask(const control::Message& question, std::uint64_t kernel,
                            control::KernelReply& reply) {
    return ask_until(question, {}, [&](const control::Message& message) {
        const auto* answer = std::get_if<control::KernelReply>(&message);
        if (answer == nullptr || answer->id != kernel) return false;
        reply = *answer;
        return true;
    });
}

Status offpath_context::ask(control::CopiesAsked& copies) {
    return ask_until(control::CopiesAsked{}, {}, [&](const control::Message& message) {
        const auto* answer = std::get_if<control::CopiesAsked>(&message);
        if (answer != nullptr) copies = *answer;
        return answer != nullptr;
    });
}

void offpath_context::take_kernel_texts() {
    std::lock_guard socket_guard(socket_mutex_);
    if (attachment.line->texts() == nullptr) attachment.line->take_texts(attachment.welcome.node);
}

Status offpath_context::ask_for_kernel_texts() {
    control::KernelTextsAsked question;
    {
        auto guard = lock();
        question.number = ++last_question;
    }
    return ask_until(question, {}, [&](const control::Message& message) {
        const auto* answer = std::get_if<control::KernelTextsAsked>(&message);
        return answer != nullptr && *answer == question;
    });
}
