// UnifiedMemory: the program's memory in this process, at the program's own addresses, for programs that
// require unified shared memory. A page comes from the program when a function first touches it; the fault is
// the signal. When a function ends, the bytes that functions have changed go back to the program. When one
// begins, all pages are given up, so that it sees what the program has changed. Within one process all
// functions share the pages.
//
// Ownership: borrows `program`. Threads: any; fault() is for the handler of SIGSEGV, in the thread that
// faulted. Invariant: a page is absent, or read-only and equal to what the program had, or writable with a
// copy of what the program had.
#pragma once

#include "base/status.h"
#include "memory/piece_lists.h"
#include "target/records.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace offpath::target {

// The memory of the program, wherever the program is.
class ProgramMemory {
  public:
    virtual ~ProgramMemory() = default;
    // Returns how many bytes from `address` on could be read.
    virtual std::size_t read(std::uint64_t address, std::span<std::byte> into) = 0;
    // False: some of it cannot be written.
    virtual bool write(std::span<const memory::ForeignPiece> pieces) = 0;
};

class UnifiedMemory {
  public:
    explicit UnifiedMemory(std::unique_ptr<ProgramMemory> program);
    // Keeps this process's own mappings away from the program's. unavailable, with `problem`: a mapping of
    // this process is there already. Another process may be mapped elsewhere and succeed.
    Status reserve(std::span<const AddressRange> ranges, std::string& problem);

    // True: the page is there now, and the instruction can be repeated. `instruction` is its address.
    bool fault(std::uint64_t address, std::uint64_t instruction);
    // Before a function. False, with `problem`, as release().
    bool acquire(std::string& problem);
    // After a function. False, with `problem`: changes were lost, since the program has no such memory.
    bool release(std::string& problem);

  private:
    struct Page {
        std::unique_ptr<std::byte[]> before;  // what the program had; null: the page is read-only
    };
    bool fetch(std::uint64_t page);
    bool make_writable(std::uint64_t page);
    std::size_t reserved_after(std::uint64_t page, std::size_t limit) const;
    bool write_back(std::string& problem);
    void add_changes(std::uint64_t page, const std::byte* before,
                     std::vector<memory::ForeignPiece>& pieces) const;
    void drop();

    const std::unique_ptr<ProgramMemory> program_;
    const std::size_t page_bytes_;
    std::mutex mutex_;
    std::vector<AddressRange> reserved_;  // sorted
    std::map<std::uint64_t, Page> pages_;
    std::vector<std::uint64_t> written_;
    // Faults one after the other move through memory: the next ones get more pages at once.
    std::uint64_t next_fetch_ = 0, next_write_ = 0;
    std::size_t fetch_pages_ = 0, write_pages_ = 0;
};

}  // namespace offpath::target
