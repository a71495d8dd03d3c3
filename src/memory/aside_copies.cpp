#include "memory/aside_copies.h"

#include "base/log.h"
#include "memory/cma.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace offpath::memory {
namespace {

constexpr std::uint64_t least_page_bytes = 4096;

struct CopyJob {
    bool writes = false;
    std::vector<ForeignPiece> pieces;  // as the caller gave them
    Completion* completion = nullptr;  // null: given up
    std::vector<std::byte> bytes;      // of all pieces, one after the other
    std::vector<AddressRange> memory_files;
    Status status = Status::ok;

    void copy(const Cma& cma);
    // Notes the memory files that the pieces are in, where they can be identified.
    void find_memory_files(pid_t pid);
    void hand_out() const;
};

void CopyJob::copy(const Cma& cma) {
    std::vector<ForeignPiece> here = pieces;
    std::byte* at = bytes.data();
    for (ForeignPiece& piece : here) {
        piece.local = at;
        at += piece.bytes;
    }
    status = writes ? cma.write(here) : cma.read(here);
}

void CopyJob::find_memory_files(pid_t pid) {
    std::uint64_t looked_at = 0;
    for (const ForeignPiece& piece : pieces) {
        const bool known = std::ranges::any_of(memory_files, [&](const AddressRange& file) {
            return piece.address >= file.begin && piece.address < file.end;
        });
        if (known || piece.address / least_page_bytes == looked_at) continue;
        looked_at = piece.address / least_page_bytes;
        const AddressRange file = memory_file_at(pid, piece.address);
        if (file.end != 0) memory_files.push_back(file);
    }
}

void CopyJob::hand_out() const {
    const std::byte* from = bytes.data();
    for (const ForeignPiece& piece : pieces) {
        std::memcpy(piece.local, from, piece.bytes);
        from += piece.bytes;
    }
}

}  // namespace

// The state that the thread and the proxy share. The thread may outlive the session.
struct AsideCopies::Shared {
    pid_t pid = 0;
    Cma cma;
    File event;
    std::mutex mutex;  // guards the members below; never held during a copy
    std::condition_variable changed;
    const std::atomic<std::uint32_t>* given_up = nullptr;  // null: the session is gone
    std::atomic<std::uint32_t>* writing = nullptr;         // likewise
    bool ends = false, running = false;
    std::deque<std::unique_ptr<CopyJob>> waiting, finished;
    CopyJob* begun = nullptr;

    void run();
};

void AsideCopies::Shared::run() {
    pthread_setname_np(pthread_self(), "offpath-aside");
    std::unique_lock lock(mutex);
    while (true) {
        changed.wait(lock, [this] { return ends || !waiting.empty(); });
        if (ends) return;
        std::unique_ptr<CopyJob> job = std::move(waiting.front());
        waiting.pop_front();
        begun = job.get();
        const bool marks = job->writes && writing != nullptr;
        if (marks) writing->fetch_add(1, std::memory_order_seq_cst);  // as in Cma
        job->status = given_up != nullptr && given_up->load(std::memory_order_seq_cst) != 0
                          ? Status::peer_lost
                          : Status::ok;
        lock.unlock();
        if (job->status == Status::ok) {
            job->copy(cma);
            if (job->writes) job->find_memory_files(pid);
        }
        lock.lock();
        if (marks && writing != nullptr) writing->fetch_sub(1, std::memory_order_release);
        begun = nullptr;
        finished.push_back(std::move(job));
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto written = ::write(event.get(), &one, sizeof one);
    }
}

Status AsideCopies::open(pid_t pid, const std::atomic<std::uint32_t>* given_up,
                         std::atomic<std::uint32_t>* writing, std::unique_ptr<AsideCopies>& made) {
    auto shared = std::make_shared<Shared>();
    shared->pid = pid;
    shared->given_up = given_up;
    shared->writing = writing;
    if (const Status status = Cma::open(pid, shared->cma); status != Status::ok) return status;
    shared->event = File(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!shared->event) return Status::system;
    made.reset(new AsideCopies(std::move(shared)));
    return Status::ok;
}

AsideCopies::~AsideCopies() {
    abandon(Status::canceled);
    std::lock_guard lock(shared_->mutex);
    shared_->ends = true;
    shared_->given_up = nullptr;
    shared_->writing = nullptr;
    shared_->changed.notify_all();
}

Status AsideCopies::start(bool writes, std::span<const ForeignPiece> pieces, Completion* completion) {
    auto job = std::make_unique<CopyJob>();
    job->writes = writes;
    job->pieces.assign(pieces.begin(), pieces.end());
    job->completion = completion;
    std::size_t bytes = 0;
    for (const ForeignPiece& piece : pieces)
        bytes += piece.bytes;
    if (writes) {
        job->bytes.reserve(bytes);
        for (const ForeignPiece& piece : pieces)
            job->bytes.insert(job->bytes.end(), piece.local, piece.local + piece.bytes);
    } else {
        job->bytes.resize(bytes);
    }
    std::lock_guard lock(shared_->mutex);
    if (!shared_->running) {
        try {
            std::thread([shared = shared_] { shared->run(); }).detach();
        } catch (const std::system_error& error) {
            log::error(Code::resources, "a thread for copies that may wait: {}", error.what());
            return Status::system;
        }
        shared_->running = true;
    }
    shared_->waiting.push_back(std::move(job));
    ++outstanding_;
    shared_->changed.notify_one();
    return Status::in_progress;
}

unsigned AsideCopies::progress(Residency& residency, std::uint64_t now_ns) {
    if (outstanding_ == 0) return 0;
    std::deque<std::unique_ptr<CopyJob>> over;
    {
        std::lock_guard lock(shared_->mutex);
        over.swap(shared_->finished);
        if (over.empty()) return 0;
        std::uint64_t count = 0;
        [[maybe_unused]] const auto got = ::read(shared_->event.get(), &count, sizeof count);
    }
    unsigned ended = 0;
    for (const auto& job : over) {
        for (const AddressRange& file : job->memory_files)
            residency.learn(file, now_ns);
        if (job->completion == nullptr) continue;  // given up
        if (!job->writes && job->status == Status::ok) job->hand_out();
        --outstanding_;
        ++ended;
        (*job->completion)(job->status);
    }
    return ended;
}

int AsideCopies::event_fd() const {
    return shared_->event.get();
}

bool AsideCopies::finished_some() const {
    if (outstanding_ == 0) return false;
    std::lock_guard lock(shared_->mutex);
    return !shared_->finished.empty();
}

void AsideCopies::stop(Status reason) {
    end(false, reason);
}

void AsideCopies::abandon(Status reason) {
    end(true, reason);
}

void AsideCopies::end(bool begun_too, Status reason) {
    if (outstanding_ == 0) return;
    std::vector<Completion*> called_off;
    {
        std::lock_guard lock(shared_->mutex);
        for (const auto& job : shared_->waiting)
            called_off.push_back(job->completion);
        shared_->waiting.clear();
        if (begun_too) {
            if (shared_->begun != nullptr && shared_->begun->completion != nullptr)
                called_off.push_back(std::exchange(shared_->begun->completion, nullptr));
            for (const auto& job : shared_->finished)
                if (job->completion != nullptr) called_off.push_back(std::exchange(job->completion, nullptr));
        }
    }
    outstanding_ -= called_off.size();
    for (Completion* completion : called_off)
        (*completion)(reason);
}

}  // namespace offpath::memory
