// RemoteLedger: the ledger (rma/ledger.h) of a window whose rank's memory this process reaches only by
// messages. Each change is a transfer of one word. The words before an update and behind it have an order,
// because small transfers have one (HostMemory::orders_writes_up_to). No marks. Threads: the engine's.
#pragma once

#include "base/completion.h"
#include "memory/host_memory.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

namespace offpath::engine {

class RemoteLedger {
  public:
    // `words`: of the client, all 0. Borrows `memory`. `settled` is called when the last transfer under way
    // is over.
    RemoteLedger(memory::HostMemory& memory, const memory::HostRange& words, std::size_t ranks,
                 std::function<void()> settled);
    RemoteLedger(const RemoteLedger&) = delete;
    RemoteLedger& operator=(const RemoteLedger&) = delete;

    void close() { set(0, 1, nullptr); }
    // An update of so many bytes begins. `then`, which may be null, is called once the word is there. Returns
    // what HostMemory::write returns.
    Status begin(std::size_t rank, std::uint64_t bytes, Completion* then);
    // It has not begun after all.
    void take_back(std::size_t rank, std::uint64_t bytes);
    void end(std::size_t rank, std::uint64_t bytes);

    // Transfers under way. Until they are over, the client's words and this object must stay.
    std::size_t outstanding() const { return outstanding_; }

  private:
    struct Note : Completion {
        RemoteLedger* home = nullptr;
        Completion* then = nullptr;
        std::uint64_t value = 0;
    };
    Status set(std::size_t at, std::uint64_t value, Completion* then);
    static void on_written(Completion* self, Status status);

    memory::HostMemory& memory_;
    const memory::HostRange words_;
    const std::size_t ranks_;
    const std::function<void()> settled_;
    std::vector<std::uint64_t> values_;
    std::deque<Note> notes_;  // a deque, so that their addresses do not change
    std::vector<Note*> free_;
    std::size_t outstanding_ = 0;
};

}  // namespace offpath::engine
