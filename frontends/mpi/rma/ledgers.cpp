#include "ledgers.h"

#include <offpath/loss.h>

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "communicators/agreeing.h"
#include "runtime/runtime.h"
#include "windows.h"

namespace offpath::mpi {
namespace {

constexpr int look_ms = 250;

// Closes the ledgers of this process when its device no longer reaches its memory.
class Watch {
  public:
    // A word that says whether a ledger is closed, and the one by which other ranks ask for that.
    struct Words {
        std::uint64_t* closed;
        const std::uint64_t* asked;
    };
    // False: this process cannot see the end of its device, or can have no thread.
    bool begin(const Words& words) {
        const std::lock_guard lock(mutex_);
        if (!thread_.joinable() && !start()) return false;
        words_.push_back(words);
        if (ended_) set(words.closed);
        return true;
    }
    void end(const std::uint64_t* closed) {
        const std::lock_guard lock(mutex_);
        std::erase_if(words_, [&](const Words& words) { return words.closed == closed; });
    }
    void stop() {
        if (!thread_.joinable()) return;
        eventfd_write(stops_, 1);
        thread_.join();
        ::close(device_end_);
        ::close(stops_);
    }

  private:
    static void set(std::uint64_t* closed) {
        std::atomic_ref(*closed).store(static_cast<std::uint64_t>(Ledger::Closed::yes),
                                       std::memory_order_release);
    }
    bool start() {
        device_end_ = offpath_context_device_end(runtime().context);
        if (device_end_ < 0) return false;
        stops_ = eventfd(0, EFD_CLOEXEC);
        // Signals are for the program's threads.
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        try {
            if (stops_ >= 0) thread_ = std::thread([this] { run(); });
        } catch (const std::system_error&) {
            // It is not joinable.
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        if (thread_.joinable()) return true;
        ::close(device_end_);
        if (stops_ >= 0) ::close(stops_);
        return false;
    }
    void run() {
        pthread_setname_np(pthread_self(), "offpath-windows");
        std::array<pollfd, 2> entries{pollfd{device_end_, POLLIN, 0}, pollfd{stops_, POLLIN, 0}};
        while (::poll(entries.data(), entries.size(), look_ms) <= 0) {
            if (is_asked()) (void)offpath_context_end_stopped_device(runtime().context);
        }
        if (entries[1].revents != 0) return;
        const std::lock_guard lock(mutex_);
        ended_ = true;
        for (const Words& words : words_)
            set(words.closed);
    }
    bool is_asked() {
        const std::lock_guard lock(mutex_);
        return std::ranges::any_of(words_, [](const Words& words) {
            return std::atomic_ref(*const_cast<std::uint64_t*>(words.asked))
                           .load(std::memory_order_relaxed) != 0 &&
                   std::atomic_ref(*words.closed).load(std::memory_order_relaxed) == 0;
        });
    }

    std::mutex mutex_;
    std::thread thread_;
    int device_end_ = -1, stops_ = -1;
    std::vector<Words> words_;
    bool ended_ = false;
};

// Never destroyed: a program that fails may end while the thread sleeps.
Watch& watch() {
    static Watch& one = *new Watch;
    return one;
}

}  // namespace

Ledger* Ledger::make(Window& window) {
    std::unique_ptr<Ledger> ledger(new Ledger(window.rank, window.size));
    const std::size_t words = OFFPATH_LEDGER_WORDS(window.size) + static_cast<std::size_t>(window.size) + 1;
    void* memory = nullptr;
    bool is_kept = false;  // the device writes the words
    bool good = offpath_mem_alloc(runtime().context, words * sizeof(std::uint64_t), &memory) == OFFPATH_OK;
    if (good) {
        ledger->words_ = static_cast<std::uint64_t*>(memory);
        std::fill_n(ledger->words_, words, 0);
        good = is_kept = watch().begin({ledger->words_, ledger->words_ + words - 1}) &&
                         offpath_window_keep_ledger(window.device, ledger->words_) == OFFPATH_OK;
    }
    if (!all_agree(window.comm, good)) {
        if (is_kept) ledger->leave_to_device();
        return nullptr;
    }
    PMPI_Comm_set_errhandler(window.comm, MPI_ERRORS_RETURN);
    MPI_Win all = MPI_WIN_NULL;
    const int error = PMPI_Win_create(ledger->words_, static_cast<MPI_Aint>(words * sizeof(std::uint64_t)),
                                      sizeof(std::uint64_t), MPI_INFO_NULL, window.comm, &all);
    // As for the window of the data (host_or_device.cpp), a window that not all ranks have cannot be freed.
    if (!all_agree(window.comm, error == MPI_SUCCESS)) {
        ledger->leave_to_device();
        return nullptr;
    }
    PMPI_Win_set_errhandler(all, MPI_ERRORS_RETURN);
    ledger->all_ = all;
    return ledger.release();
}

// The device writes the words as long as it has the window, so their memory lives until MPI_Finalize.
void Ledger::leave_to_device() {
    watch().end(words_);
    words_ = nullptr;
}

Ledger::~Ledger() {
    if (all_ != MPI_WIN_NULL) PMPI_Win_free(&all_);
    if (words_ == nullptr) return;
    watch().end(words_);
    offpath_mem_free(runtime().context, words_);
}

void Ledger::close(Closed how) {
    std::atomic_ref(words_[0]).store(static_cast<std::uint64_t>(how), std::memory_order_release);
}

void Ledger::hold(int target, Holds how) {
    const auto at = OFFPATH_LEDGER_WORDS(ranks_) + static_cast<std::size_t>(target);
    std::atomic_ref(words_[at]).store(static_cast<std::uint64_t>(how), std::memory_order_seq_cst);
}

// Reads `count` words, `step` words apart.
bool Ledger::read(int rank, int first, int step, int count, std::uint64_t* words) {
    if (rank == rank_) {
        for (int i = 0; i < count; ++i)
            words[i] = std::atomic_ref(words_[first + i * step]).load(std::memory_order_acquire);
        return true;
    }
    const std::lock_guard guard(reading_);
    if (PMPI_Win_lock(MPI_LOCK_SHARED, rank, 0, all_) != MPI_SUCCESS) return false;
    bool good = true;
    for (int i = 0; i < count; ++i)
        good &= PMPI_Get(words + i, 1, MPI_UINT64_T, rank, first + i * step, 1, MPI_UINT64_T, all_) ==
                MPI_SUCCESS;
    return PMPI_Win_unlock(rank, all_) == MPI_SUCCESS && good;
}

bool Ledger::read_closed(int rank, Closed& closed) {
    std::uint64_t word = 0;
    if (!read(rank, 0, 0, 1, &word)) return false;
    closed = static_cast<Closed>(word);
    return true;
}

bool Ledger::read_holds(int rank, int target, Holds& holds) {
    std::uint64_t word = 0;
    if (!read(rank, static_cast<int>(OFFPATH_LEDGER_WORDS(ranks_)) + target, 0, 1, &word)) return false;
    holds = static_cast<Holds>(word);
    return true;
}

bool Ledger::ask_to_close(int rank) {
    const std::uint64_t asked = 1;
    const auto at = static_cast<MPI_Aint>(OFFPATH_LEDGER_WORDS(ranks_)) + ranks_;
    const std::lock_guard guard(reading_);
    if (PMPI_Win_lock(MPI_LOCK_SHARED, rank, 0, all_) != MPI_SUCCESS) return false;
    const int error = PMPI_Accumulate(&asked, 1, MPI_UINT64_T, rank, at, 1, MPI_UINT64_T, MPI_REPLACE, all_);
    return PMPI_Win_unlock(rank, all_) == MPI_SUCCESS && error == MPI_SUCCESS;
}

bool Ledger::read_updates(int target, Updates& updates) {
    std::array<std::uint64_t, 2> words{};
    if (!read(target, 1 + rank_, ranks_, 2, words.data())) return false;
    updates = {words[0], words[1]};
    return true;
}

void close_ledgers() {
    watch().stop();
}

}  // namespace offpath::mpi
