#include "proxy/kernel_jobs.h"

#include "base/log.h"
#include "trace/trace.h"

#include <offpath/compute.h>

#include <sys/epoll.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace offpath::proxy {
namespace {

constexpr std::size_t max_kernels = 1024;
constexpr std::uint64_t piece_bytes = 256 << 10;
constexpr std::uint64_t max_arena_bytes = std::uint64_t{16} << 30;
constexpr std::uint64_t min_arena_bytes = 2 << 20;
constexpr std::uint64_t alignment = 128;
constexpr unsigned steps_per_round = 4;
constexpr std::uint64_t arena_region = 0;
constexpr std::uint64_t second_ns = 1'000'000'000;
// How long a host may take to stop. A thread in a system call may delay it.
constexpr std::uint64_t stop_ns = second_ns / 2;

std::uint64_t aligned(std::uint64_t bytes) {
    return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

KernelJobs::KernelJobs(const kernel_host::HostConfig& config, std::uint32_t seconds, const Clock& clock,
                       int epoll, memory::SessionMemory& memory, KernelTexts& texts, std::string client)
    : config_(config),
      seconds_(seconds),
      clock_(clock),
      epoll_(epoll),
      memory_(memory),
      texts_(texts),
      output_(epoll, texts),
      client_(std::move(client)) {
    for (KernelPiece& piece : pieces_) {
        piece.jobs = this;
        piece.function = [](Completion* completion, Status status) {
            KernelPiece& done = *static_cast<KernelPiece*>(completion);
            done.busy = false;
            --done.jobs->pieces_busy_;
            if (is_error(status) && done.jobs->copy_status_ == Status::ok) done.jobs->copy_status_ = status;
        };
    }
}

KernelJobs::~KernelJobs() = default;

Status KernelJobs::load(const control::LoadKernel& kernel, Answer answer) {
    if (kernels_.size() >= max_kernels || kernels_.contains(kernel.id)) return Status::invalid;
    const std::uint64_t limit_ns = (kernel.seconds != 0 ? kernel.seconds : seconds_) * second_ns;
    kernels_[kernel.id] = {kernel.path, kernel.symbol, limit_ns, false};
    KernelJob job;
    job.kind = Kind::load;
    job.kernel = kernel.id;
    job.answer = std::move(answer);
    queue_.push_back(std::move(job));
    return Status::ok;
}

Status KernelJobs::run(std::uint64_t kernel, std::span<const engine::KernelBuffer> buffers,
                       std::span<const std::byte> arguments, Completion* done) {
    if (!knows(kernel)) return Status::invalid;
    KernelJob job;
    job.kernel = kernel;
    for (const engine::KernelBuffer& buffer : buffers) {
        const memory::HostRange& range = buffer.range;
        Placed placed{buffer, {arena_region, 0, range.bytes}, false};
        std::uint64_t bytes = 0;
        if (range.bytes > 0 && memory_.region_file(range, bytes) >= 0)
            placed.place = {range.region, range.address, range.bytes};
        else
            placed.copied = range.bytes > 0;
        job.copies |= placed.copied;
        job.buffers.push_back(placed);
    }
    job.arguments.assign(arguments.begin(), arguments.end());
    job.done = done;
    queue_.push_back(std::move(job));
    return Status::in_progress;
}

bool KernelJobs::take_back(const Completion* done) {
    const std::size_t begun = std::max<std::size_t>(sent_, phase_ == Phase::waiting ? 0 : 1);
    const auto is_it = [done](const KernelJob& job) { return job.done == done; };
    const auto job = std::find_if(queue_.begin(), queue_.end(), is_it);
    if (job == queue_.end() || static_cast<std::size_t>(job - queue_.begin()) < begun) return false;
    queue_.erase(job);
    return true;
}

void KernelJobs::unload(std::uint64_t kernel) {
    KernelJob job;
    job.kind = Kind::unload;
    job.kernel = kernel;
    queue_.push_back(std::move(job));
}

void KernelJobs::region_gone(std::uint64_t region) {
    if (mapped_.erase(region) > 0) gone_.push_back(region);
}

unsigned KernelJobs::progress() {
    if (host_ != nullptr && (event_ || host_->answered())) take_answers();
    if (deadline_ns_ != UINT64_MAX || stopping_) check_deadline();
    unsigned work = output_.progress() ? 1 : 0;
    while (work < steps_per_round && step())
        ++work;
    return work;
}

bool KernelJobs::has_work() const {
    if (event_ || (host_ != nullptr && host_->answered()) || output_.has_work()) return true;
    if (stopped_ != Status::ok) return false;
    switch (phase_) {
        case Phase::waiting:
            return !queue_.empty() || !gone_.empty();
        case Phase::copying_in:
        case Phase::copying_out:
            return pieces_busy_ < max_pieces;
        case Phase::running:
            return may_send_ahead();
        case Phase::loading:
            break;
    }
    return false;
}

// Takes one step of the first job. Returns false if there is nothing to do until an event.
bool KernelJobs::step() {
    if (stopped_ != Status::ok) return false;
    switch (phase_) {
        case Phase::waiting:
            for (; host_ != nullptr && !gone_.empty(); gone_.pop_back())
                (void)host_->send(kernel_host::Unmap{gone_.back()});
            return !queue_.empty() && start();
        case Phase::copying_in:
            if (copy(true)) return true;
            if (!copied()) return false;
            if (is_error(copy_status_))
                over(copy_status_);
            else if (host_ == nullptr)
                phase_ = Phase::waiting;  // it was lost meanwhile: start again
            else
                send_run(queue_.front());
            return true;
        case Phase::copying_out:
            if (copy(false)) return true;
            if (!copied()) return false;
            over(copy_status_);
            return true;
        case Phase::running:
            if (!may_send_ahead()) return false;
            send_run(queue_[sent_]);
            return true;
        case Phase::loading:
            break;
    }
    return false;
}

bool KernelJobs::start() {
    KernelJob& job = queue_.front();
    if (job.kind == Kind::unload) {
        const auto kernel = kernels_.find(job.kernel);
        if (kernel != kernels_.end() && kernel->second.loaded && host_ != nullptr)
            (void)host_->send(kernel_host::Unload{job.kernel});
        kernels_.erase(job.kernel);
        over(Status::ok);
        return true;
    }
    std::string problem;
    if (!ensure_host(problem)) {
        over(Status::unsupported, problem);
        return true;
    }
    const auto kernel = kernels_.find(job.kernel);
    if (kernel == kernels_.end()) {
        over(Status::invalid, "its kernel was unloaded");
        return true;
    }
    if (!kernel->second.loaded) {
        phase_ = Phase::loading;
        set_deadline();
        job.number = ++number_;
        if (host_->send(kernel_host::Load{job.number, job.kernel, kernel->second.path,
                                          kernel->second.symbol}) != Status::ok)
            host_lost();
        return true;
    }
    if (place_buffers()) phase_ = Phase::copying_in;
    return true;
}

bool KernelJobs::ensure_host(std::string& problem) {
    if (host_ != nullptr) return true;
    if (Status status = kernel_host::KernelHost::start(config_, host_, problem); status != Status::ok)
        return false;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = host_->fd();
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, host_->fd(), &event) == 0) {
        output_.open(host_->take_output());
        log::info("{}: kernels run in process {}", client_, host_->pid());
        return true;
    }
    problem = "the kernel host cannot be watched";
    host_.reset();
    return false;
}

// Decides where the copies go. Returns false if the job is over.
bool KernelJobs::place_buffers() {
    std::uint64_t total = 0;
    for (Placed& placed : queue_.front().buffers) {
        if (!placed.copied) continue;
        placed.place.offset = total;
        if (placed.place.bytes > max_arena_bytes - total) {
            over(Status::memory, "its buffers are too large to be copied");
            return false;
        }
        total += aligned(placed.place.bytes);
    }
    if (!reserve(total)) {
        over(Status::memory, "no memory for copies of its buffers");
        return false;
    }
    copy_at_ = 0;
    copy_offset_ = 0;
    copy_status_ = Status::ok;
    return true;
}

bool KernelJobs::reserve(std::uint64_t bytes) {
    if (bytes <= arena_.bytes()) return true;
    const std::uint64_t size = std::max(min_arena_bytes, std::bit_ceil(bytes));
    memory::File file;
    memory::Mapping mapping;
    if (memory::make_memory_file("offpath-kernel-buffers", size, file) != Status::ok ||
        memory::Mapping::map(file.get(), size, mapping) != Status::ok)
        return false;
    mapping.advise_huge_pages();
    arena_file_ = std::move(file);
    arena_ = std::move(mapping);
    arena_known_ = false;
    return true;
}

// Starts to copy a piece. Returns false if no piece is left, or if too many are busy.
bool KernelJobs::copy(bool in) {
    std::vector<Placed>& buffers = queue_.front().buffers;
    const std::uint32_t wanted = in ? OFFPATH_IN : OFFPATH_OUT;
    while (copy_at_ < buffers.size() && (is_error(copy_status_) || !buffers[copy_at_].copied ||
                                         (buffers[copy_at_].buffer.access & wanted) == 0 ||
                                         copy_offset_ == buffers[copy_at_].place.bytes)) {
        ++copy_at_;
        copy_offset_ = 0;
    }
    if (copy_at_ == buffers.size() || pieces_busy_ == max_pieces) return false;
    const Placed& placed = buffers[copy_at_];
    KernelPiece& piece = *std::find_if(pieces_.begin(), pieces_.end(),
                                       [](const KernelPiece& candidate) { return !candidate.busy; });
    const std::uint64_t offset = copy_offset_;
    const std::uint64_t bytes = std::min(piece_bytes, placed.place.bytes - offset);
    std::byte* const at = arena_.data() + placed.place.offset + offset;
    copy_offset_ += bytes;
    piece.busy = true;
    ++pieces_busy_;
    const Status status = in ? memory_.read(placed.buffer.range, offset, at, bytes, &piece)
                             : memory_.write(placed.buffer.range, offset, at, bytes, &piece);
    if (status != Status::in_progress) piece(status);
    return true;
}

bool KernelJobs::copied() const {
    return copy_at_ == queue_.front().buffers.size() && pieces_busy_ == 0;
}

// Whether the next run can follow the runs that the host already has. Neither it nor the last of them may
// need copies, and the host must not need another message first.
bool KernelJobs::may_send_ahead() const {
    if (sent_ == 0 || sent_ == max_sent || sent_ == queue_.size() || !gone_.empty()) return false;
    const KernelJob& job = queue_[sent_];
    if (job.kind != Kind::run || job.copies || queue_[sent_ - 1].copies) return false;
    const auto kernel = kernels_.find(job.kernel);
    return kernel != kernels_.end() && kernel->second.loaded;
}

// `job` is the first job that the host does not have.
void KernelJobs::send_run(KernelJob& job) {
    kernel_host::Run run;
    run.number = job.number = ++number_;
    run.kernel = job.kernel;
    run.arguments = std::move(job.arguments);
    std::vector<int> files;
    const auto send_region = [&](std::uint64_t id, std::uint64_t bytes, int file) {
        run.regions.push_back({id, bytes});
        files.push_back(file);
    };
    for (const Placed& placed : job.buffers) {
        run.buffers.push_back(placed.place);
        if (placed.copied) {
            if (!arena_known_) send_region(arena_region, arena_.bytes(), arena_file_.get());
            arena_known_ = true;
        } else if (placed.place.bytes > 0 && mapped_.insert(placed.place.region).second) {
            std::uint64_t bytes = 0;
            const int file = memory_.region_file(placed.buffer.range, bytes);
            send_region(placed.place.region, bytes, file);
        }
    }
    phase_ = Phase::running;
    if (++sent_ == 1) {
        set_deadline();
        begin_trace();
    }
    if (host_->send(run, files) == Status::ok) return;
    // Answers that the host sent before its end count.
    take_answers();
    if (host_ != nullptr) host_lost();
}

void KernelJobs::begin_trace() {
    if (!trace::on()) [[likely]]
        return;
    traced_ = trace::new_id();
    trace::begin(trace::Kind::kernel, traced_, 0, 0,
                 trace::number_of(kernels_[queue_.front().kernel].symbol));
}

void KernelJobs::end_trace() {
    if (traced_ != 0) trace::end(trace::Kind::kernel, std::exchange(traced_, 0));
}

bool KernelJobs::event(int fd) {
    if (output_.owns(fd)) {
        output_.event();
        return true;
    }
    if (host_ == nullptr || host_->fd() != fd) return false;
    event_ = true;
    return true;
}

// The host begins with the first job now.
void KernelJobs::set_deadline() {
    const auto kernel = kernels_.find(queue_.front().kernel);
    const std::uint64_t limit_ns = kernel == kernels_.end() ? 0 : kernel->second.limit_ns;
    deadline_ns_ = limit_ns == 0 ? UINT64_MAX : clock_.now_ns() + limit_ns;
}

// Stops the host first, because it may have answered, or answer, before a kill reaches it. The runs after
// that one would then end for a limit that none has exceeded. The end of a host that is killed comes as an
// event.
void KernelJobs::check_deadline() {
    const std::uint64_t now_ns = clock_.now_ns();
    if (host_ == nullptr || exceeded_ns_ != 0 || stopped_ != Status::ok) {
        deadline_ns_ = UINT64_MAX;
        stopping_ = false;
        return;
    }
    if (now_ns >= deadline_ns_ && !stopping_) {
        stopping_ = true;
        host_->stop();
        return;
    }
    if (!stopping_) return;
    if (now_ns >= deadline_ns_ && !host_->has_stopped() && now_ns - deadline_ns_ < stop_ns) return;
    take_answers();
    if (!std::exchange(stopping_, false)) return;  // the host is lost
    if (now_ns < deadline_ns_) return host_->go_on();
    deadline_ns_ = UINT64_MAX;
    exceeded_ns_ = std::max<std::uint64_t>(kernels_[queue_.front().kernel].limit_ns, 1);
    host_->kill();
}

void KernelJobs::take_answers() {
    event_ = false;
    while (host_ != nullptr) {
        kernel_host::Answer answer;
        const Status status = host_->receive(answer);
        if (status == Status::retry) return;
        if (status != Status::ok) return host_lost();
        on_answer(answer);
    }
}

void KernelJobs::on_answer(const kernel_host::Answer& answer) {
    if (stopped_ != Status::ok) return;
    const bool expected = phase_ == Phase::loading || phase_ == Phase::running;
    if (!expected || answer.number != queue_.front().number) {
        log::error(Code::malformed, "{}: its kernel host answered what was not asked", client_);
        return host_lost();
    }
    deadline_ns_ = UINT64_MAX;
    if (phase_ == Phase::running) --sent_;
    end_trace();
    if (is_error(answer.status)) return over(answer.status, answer.text);
    if (phase_ == Phase::loading) {
        LoadedKernel& kernel = kernels_[queue_.front().kernel];
        kernel.loaded = true;
        if (queue_.front().kind == Kind::load) return over(Status::ok);
        phase_ = Phase::waiting;  // an earlier host had loaded this kernel
        return;
    }
    if (!queue_.front().copies) return over(Status::ok);
    phase_ = Phase::copying_out;
    copy_at_ = 0;
    copy_offset_ = 0;
}

void KernelJobs::host_lost() {
    std::string how = "the process that runs it ended: " + host_->end();
    end_trace();
    host_.reset();
    output_.finish();
    event_ = false;
    stopping_ = false;
    deadline_ns_ = UINT64_MAX;
    if (const std::uint64_t limit_ns = std::exchange(exceeded_ns_, 0); limit_ns != 0)
        how = fmt::format("it did not end within {} s and was killed", limit_ns / second_ns);
    for (auto& [id, kernel] : kernels_)
        kernel.loaded = false;
    mapped_.clear();
    gone_.clear();
    arena_known_ = false;
    if (stopped_ != Status::ok) return;
    if (phase_ != Phase::loading && phase_ != Phase::running) {
        log::warn(Code::kernel, "{}: no kernel was running: {}", client_, how);
        return;
    }
    const bool loading = queue_.front().kind == Kind::load;
    sent_ = 0;
    over(loading ? Status::invalid : Status::canceled, how);
    // The queued runs may need results of the lost run.
    fail_queue(Status::canceled);
}

// Ends the first job.
void KernelJobs::over(Status status, const std::string& why) {
    KernelJob job = std::move(queue_.front());
    queue_.pop_front();
    phase_ = sent_ > 0 ? Phase::running : Phase::waiting;
    if (sent_ > 0) {
        set_deadline();
        begin_trace();
    }
    if (job.kind == Kind::run && is_error(status) && !why.empty()) {
        const std::string symbol = kernels_.contains(job.kernel) ? kernels_[job.kernel].symbol : "";
        log::error(Code::kernel, "{}: kernel {} ({}) ends with an error: {}", client_, job.kernel, symbol,
                   why);
        texts_.failure(fmt::format("kernel {}: {}", symbol, why));
    }
    if (job.kind == Kind::load) {
        if (is_error(status)) kernels_.erase(job.kernel);
        job.answer(status, why);
    }
    if (job.done != nullptr) (*job.done)(status);
}

void KernelJobs::fail_queue(Status status) {
    std::deque<KernelJob> kept;
    std::vector<Completion*> ended;
    for (KernelJob& job : queue_) {
        if (job.kind == Kind::run)
            ended.push_back(job.done);
        else
            kept.push_back(std::move(job));
    }
    queue_ = std::move(kept);
    for (Completion* done : ended)
        (*done)(status);
}

void KernelJobs::stop(Status reason) {
    if (stopped_ != Status::ok) return;
    stopped_ = reason;
    if (host_ != nullptr) host_->kill();
}

bool KernelJobs::closed() {
    if (pieces_busy_ > 0) return false;
    queue_.erase(std::remove_if(queue_.begin(), queue_.end(),
                                [](const KernelJob& job) { return job.kind != Kind::run; }),
                 queue_.end());
    phase_ = Phase::waiting;
    sent_ = 0;
    fail_queue(stopped_);
    if (host_ == nullptr) return true;
    if (host_->reap().empty()) return false;
    host_.reset();
    return true;
}

}  // namespace offpath::proxy
