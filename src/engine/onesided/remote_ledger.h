// RemoteLedger: the ledger (rma/ledger.h) of a window whose rank's memory this process reaches only by
// messages, which may overtake each other. A word is written by one message at a time, and its latest value
// follows. The ledger is closed by the last message. No marks. Threads: the engine's.
#pragma once

#include "base/completion.h"
#include "memory/host_memory.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace offpath::engine {

class RemoteLedger {
  public:
    // `words`: of the client, all 0. Borrows `memory`. `settled` is called when the last message under way is
    // over.
    RemoteLedger(memory::HostMemory& memory, const memory::HostRange& words, std::size_t ranks,
                 std::function<void()> settled);
    RemoteLedger(const RemoteLedger&) = delete;
    RemoteLedger& operator=(const RemoteLedger&) = delete;

    // Once everything else is written.
    void close();
    // An update of so many bytes begins; the earlier one of that rank is over. in_progress: `then` is called
    // once the word is there. Otherwise returns what HostMemory::write does.
    Status begin(std::size_t rank, std::uint64_t bytes, Completion& then);
    // It has not begun after all.
    void take_back(std::size_t rank, std::uint64_t bytes);
    void end(std::size_t rank, std::uint64_t bytes);

    // Messages under way. Until they are over, the client's words and this object must stay.
    std::size_t outstanding() const { return outstanding_; }

  private:
    struct Word : Completion {
        RemoteLedger* home = nullptr;
        Completion* then = nullptr;
        std::uint64_t value = 0, sent = 0;
        bool under_way = false;
    };
    Status write(Word& word);
    static void on_written(Completion* self, Status status);

    memory::HostMemory& memory_;
    const memory::HostRange range_;
    const std::size_t ranks_;
    const std::function<void()> settled_;
    std::vector<Word> words_;
    std::size_t outstanding_ = 0;
    bool closes_ = false;
};

}  // namespace offpath::engine
