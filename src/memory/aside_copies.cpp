#include "memory/aside_copies.h"

#include "base/log.h"
#include "memory/cma.h"

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

struct Job {
    bool writes = false;
    std::uint64_t address = 0;
    std::byte* local = nullptr;        // of a read
    Completion* completion = nullptr;  // null: given up
    std::vector<std::byte> bytes;
    AddressRange memory_file;
    Status status = Status::ok;
};

}  // namespace

// What the thread and the proxy have in common; the thread may outlive the session.
struct AsideCopies::Shared {
    pid_t pid = 0;
    Cma cma;
    File event;
    std::mutex mutex;  // guards what follows; never held while something is copied
    std::condition_variable changed;
    const std::atomic<std::uint32_t>* given_up = nullptr;  // null: the session is gone
    bool ends = false, running = false;
    std::deque<std::unique_ptr<Job>> waiting, finished;
    Job* begun = nullptr;

    void run();
};

void AsideCopies::Shared::run() {
    pthread_setname_np(pthread_self(), "offpath-aside");
    std::unique_lock lock(mutex);
    while (true) {
        changed.wait(lock, [this] { return ends || !waiting.empty(); });
        if (ends) return;
        std::unique_ptr<Job> job = std::move(waiting.front());
        waiting.pop_front();
        begun = job.get();
        job->status = given_up != nullptr && given_up->load(std::memory_order_acquire) != 0
                          ? Status::peer_lost
                          : Status::ok;
        lock.unlock();
        if (job->status == Status::ok) {
            job->status = job->writes ? cma.write(job->address, job->bytes.data(), job->bytes.size())
                                      : cma.read(job->address, job->bytes.data(), job->bytes.size());
            if (job->writes) job->memory_file = memory_file_at(pid, job->address);
        }
        lock.lock();
        begun = nullptr;
        finished.push_back(std::move(job));
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto written = ::write(event.get(), &one, sizeof one);
    }
}

Status AsideCopies::open(pid_t pid, const std::atomic<std::uint32_t>* given_up,
                         std::unique_ptr<AsideCopies>& made) {
    auto shared = std::make_shared<Shared>();
    shared->pid = pid;
    shared->given_up = given_up;
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
    shared_->changed.notify_all();
}

Status AsideCopies::start(bool writes, std::uint64_t address, std::byte* local, std::size_t bytes,
                          Completion* completion) {
    auto job = std::make_unique<Job>();
    job->writes = writes;
    job->address = address;
    job->completion = completion;
    if (writes) {
        job->bytes.assign(local, local + bytes);
    } else {
        job->local = local;
        job->bytes.resize(bytes);
    }
    std::lock_guard lock(shared_->mutex);
    if (!shared_->running) {
        try {
            std::thread([shared = shared_] { shared->run(); }).detach();
        } catch (const std::system_error& error) {
            log::error("a thread for copies that may wait: {}", error.what());
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
    std::deque<std::unique_ptr<Job>> over;
    {
        std::lock_guard lock(shared_->mutex);
        over.swap(shared_->finished);
        if (over.empty()) return 0;
        std::uint64_t count = 0;
        [[maybe_unused]] const auto got = ::read(shared_->event.get(), &count, sizeof count);
    }
    unsigned ended = 0;
    for (const auto& job : over) {
        residency.learn(job->memory_file, now_ns);
        if (job->completion == nullptr) continue;  // given up
        if (!job->writes && job->status == Status::ok)
            std::memcpy(job->local, job->bytes.data(), job->bytes.size());
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
