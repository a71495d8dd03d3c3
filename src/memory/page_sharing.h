// PageSharing: puts buffers of the program that devices use again and again into a memory file, which the own
// device maps (shared_pages.h). The program sees the same memory at the same addresses. Each page lies in the
// file at the offset that is its address, so neighbours make one mapping.
//
// Only private anonymous memory without special properties is taken, only whole pages inside of a buffer, and
// only before the call returns that ends an operation on that buffer: until then nobody may write there. The
// owner of the process's memory calls (frontends/mpi/program_memory) says when memory ends or changes hands;
// it gets back private memory then. fork() gives the child copies (base/child_copies.h), and ends further
// sharing.
//
// Nothing is shared while the process has a device or a ring open that may have pinned pages: what is pinned
// must stay where it is.
//
// One for the process, for its life. Threads: any.
#pragma once

#include "memory/file.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace offpath::memory {

struct PageRange {
    std::uintptr_t begin = 0, end = 0;
};

class PageSharing {
  public:
    static constexpr std::size_t least_bytes = std::size_t{256} << 10;  // of whole pages together
    static constexpr std::size_t most_at_a_time = std::size_t{16} << 20;
    static constexpr std::uint64_t most_bytes = std::uint64_t{32} << 30;
    static constexpr std::uint32_t uses_before = 4;

    static PageSharing& of_process();

    // From now on buffers may be shared, as long as `watched` returns true: the process's memory calls are
    // watched. It is asked before each move, and may take milliseconds.
    using Watched = bool();
    void begin(Watched* watched);
    // No more of them, for instance because others may write into the program's memory at any time. What is
    // shared stays so.
    void stop() { on_.store(false, std::memory_order_relaxed); }
    bool on() const { return on_.load(std::memory_order_relaxed); }

    // One session at a time tells its device of the pages, and of all that are shared already when it claims
    // that. False: another does.
    bool claim(const void* session, std::vector<PageRange>& shared);
    void release(const void* session);

    // An operation of the device uses the buffer from now on. Returns whether share() may have to do.
    bool used(std::uintptr_t begin, std::uintptr_t end);
    // An operation on the buffer has ended, and its caller does not know yet. Returns which pages are shared
    // from now on, and not before; empty: none. The owner of the context tells the device.
    PageRange share(std::uintptr_t begin, std::uintptr_t end);
    // Whether all of them are shared.
    bool has(const PageRange& pages);
    // The device cannot have them.
    void refused(const PageRange& pages);
    // A buffer is about to be used. Finds pages that are no longer shared although nobody has said so.
    void check(std::uintptr_t begin, std::uintptr_t end);

    // Pages that are shared no longer. The device must be told before it uses that memory again. take_gone()
    // returns false if there are none.
    bool has_gone() const { return has_gone_.load(std::memory_order_acquire); }
    bool take_gone(const void* session, PageRange& pages);
    int file() const { return file_.get(); }

    // Whether memory that is shared, or may be, is concerned. Costs two loads.
    bool concerns(std::uintptr_t begin, std::uintptr_t end) const {
        return begin < high_.load(std::memory_order_relaxed) && end > low_.load(std::memory_order_relaxed);
    }
    // What happens to memory. gone: it has been unmapped, or replaced. unseen: likewise, or it was moved, and
    // nobody said so. dropped: its contents are worthless;
    // afterwards the pages are private and new. kept: the pages become private and keep their contents.
    // Nobody uses it during the call.
    enum class Change { gone, unseen, dropped, kept };
    void changes(std::uintptr_t begin, std::uintptr_t end, Change change);

    std::uint64_t shared_bytes() const { return shared_bytes_.load(std::memory_order_relaxed); }
    // At one time.
    std::uint64_t most_shared_bytes() const { return most_shared_bytes_.load(std::memory_order_relaxed); }

  private:
    struct Buffer {
        std::uintptr_t begin = 0, end = 0;
        std::uint32_t uses = 0;
        bool done = false;
    };
    union Kept;
    constexpr PageSharing() = default;
    Buffer* find(std::uintptr_t begin, std::uintptr_t end);
    PageRange missing(std::uintptr_t begin, std::uintptr_t end) const;
    bool make_file();
    bool move(const PageRange& pages);
    bool not_moved(const PageRange& pages);
    void forget_uses(std::uintptr_t begin, std::uintptr_t end);
    void punch(const PageRange& pages);
    bool make_private(const PageRange& pages, bool keep);
    void remove(PageRange pages, Change change);
    PageRange first_shared_but_not_mapped(std::uintptr_t begin, std::uintptr_t end) const;
    bool is_of_a_file(std::uintptr_t address, std::uint64_t entry) const;
    void widen(std::uintptr_t begin, std::uintptr_t end);
    static void before_fork();
    static void after_fork();
    static void in_child();

    std::atomic<bool> on_{false}, has_gone_{false};
    std::atomic<std::uintptr_t> low_{UINTPTR_MAX}, high_{0};
    std::atomic<std::uint64_t> shared_bytes_{0}, most_shared_bytes_{0};
    std::mutex mutex_;  // guards what follows
    File file_, pagemap_;
    std::array<Buffer, 64> buffers_{};
    std::size_t oldest_ = 0;         // of buffers_
    std::vector<PageRange> shared_;  // in order; they neither overlap nor touch
    std::vector<PageRange> gone_;
    std::vector<PageRange> lost_;  // shared before, and where they are now is not known
    const void* session_ = nullptr;
    Watched* watched_ = nullptr;
};

}  // namespace offpath::memory
