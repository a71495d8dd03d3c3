// How unified memory reaches the program: by system calls where it runs on this system, over the line where
// it does not. FetchedPages pairs requests for bytes of a remote program with their answers.
//
// Ownership: FetchedPages owns what waits; RemoteProgram borrows it. Threads: any, but arrived() belongs to
// the thread that reads the line, which must never wait for a page itself.
#pragma once

#include "target/host/unified_memory.h"

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>

#include <sys/types.h>

namespace offpath::target {

class LocalProgram final : public ProgramMemory {
  public:
    explicit LocalProgram(pid_t pid) : pid_(pid) {}
    std::size_t read(std::uint64_t address, std::span<std::byte> into) override;
    bool write(std::span<const memory::ForeignPiece> pieces) override;

  private:
    const pid_t pid_;
};

class FetchedPages {
  public:
    using Send = std::function<void(std::span<const std::byte> record)>;
    // `over`: the program is gone, and nothing arrives any more.
    FetchedPages(Send send, std::function<bool()> over) : send_(std::move(send)), over_(std::move(over)) {}

    // Waits. Returns how many bytes came.
    std::size_t fetch(std::uint64_t address, std::span<std::byte> into);
    void store(std::span<const memory::ForeignPiece> pieces);
    void arrived(std::uint64_t number, std::span<const std::byte> bytes);

  private:
    struct Wanted {
        std::span<std::byte> into;
        std::size_t got = 0;
        bool done = false;
    };
    const Send send_;
    const std::function<bool()> over_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::uint64_t last_ = 0;
    std::map<std::uint64_t, Wanted*> wanted_;
};

class RemoteProgram final : public ProgramMemory {
  public:
    explicit RemoteProgram(FetchedPages& pages) : pages_(pages) {}
    std::size_t read(std::uint64_t address, std::span<std::byte> into) override {
        return pages_.fetch(address, into);
    }
    // The program finds out whether it has such memory.
    bool write(std::span<const memory::ForeignPiece> pieces) override {
        pages_.store(pieces);
        return true;
    }

  private:
    FetchedPages& pages_;
};

}  // namespace offpath::target
