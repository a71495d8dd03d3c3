// The journal: what this PE needs to start an operation once more if a device is lost with it. It has every
// put, update and non-blocking get that was given to the devices and is not known to be done: those without a
// request here, the others in Pending. The device of the target marks the puts and updates that it has
// applied (offpath/loss.h), so that none of them happens twice (recovery.h).
//
// Only a job that can go on after the loss of a device keeps it. Threads: one; such a job has no others.
#pragma once

#include "unfinished.h"
#include "world.h"

#include <offpath/loss.h>
#include <offpath/windows.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace offpath::shmem {

class Journal {
  public:
    // More than this make note() wait until all are done.
    static constexpr std::size_t most = OFFPATH_MARKS_OUTSTANDING / 2;
    static constexpr std::size_t most_bytes = std::size_t{8} << 20, most_part_bytes = 128 << 10;

    bool on() const { return on_; }
    void open(int pes);
    void close();
    // New devices know no marks.
    void begin_marks() { marks_.assign(marks_.size(), 0); }

    // Call it before the operation is started, and nothing else between. The reference lives until the next
    // call here.
    Unfinished& note(const Unfinished& operation) {
        Unfinished& one = list_.emplace_back(operation);
        one.order = ++order_;
        mark(one);
        return one;
    }
    void mark(Unfinished& one) {
        if (one.kind == Unfinished::Kind::get || is_in_parts(one)) return;
        one.mark = ++marks_[static_cast<std::size_t>(one.pe)];
        offpath_window_mark_next(world.window, one.mark);
    }
    // Nothing tells which parts of it are done.
    static bool is_in_parts(const Unfinished& one) {
        return one.kind == Unfinished::Kind::sum && one.bytes > most_part_bytes;
    }
    // Copies the data of the last put, which has been started. The program may change them from now on.
    void keep_bytes();
    // The last operation is done, or kept elsewhere.
    Unfinished take() {
        const Unfinished last = list_.back();
        list_.pop_back();
        return last;
    }
    // Everything here is done.
    void clear() {
        list_.clear();
        bytes_.clear();
    }
    bool full() const { return list_.size() >= most || bytes_.size() >= most_bytes; }
    // Empties the journal. The data stay until clear().
    std::vector<Unfinished> take_all();
    const void* source(const Unfinished& one) const {
        return one.owned ? bytes_.data() + one.at : one.source;
    }

  private:
    bool on_ = false;
    std::uint64_t order_ = 0;
    std::vector<std::uint32_t> marks_;  // by PE
    std::vector<Unfinished> list_;
    std::vector<std::byte> bytes_;
};

extern Journal journal;

}  // namespace offpath::shmem
