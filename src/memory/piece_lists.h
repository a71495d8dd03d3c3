// PieceLists: turns pieces of another process's memory into the lists that process_vm_readv and
// process_vm_writev take, so that one system call copies many of them. Adjacent pieces become one entry. A
// reader may also join pieces that are close together, since the kernel takes far longer to find a page than
// to copy the bytes between them. Those bytes go into a buffer that is never read. Pure: the caller makes the
// system calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <sys/uio.h>

namespace offpath::memory {

// A piece of another process's memory, and the local bytes that it is copied to or from.
struct ForeignPiece {
    std::uint64_t address = 0;
    std::byte* local = nullptr;
    std::size_t bytes = 0;
};

class PieceLists {
  public:
    // The longest list that Linux accepts (IOV_MAX).
    static constexpr std::size_t most_entries = 1024;
    // Bounds the time in the kernel per call; larger amounts measured no faster.
    static constexpr std::size_t most_bytes = std::size_t{1} << 20;
    // The largest gap between two pieces that a reader joins.
    static constexpr std::size_t most_gap_bytes = 512;

    // Borrows `pieces`. `joins` is for reading only.
    PieceLists(std::span<const ForeignPiece> pieces, bool joins);

    bool over() const { return first_ == pieces_.size(); }
    // Makes the lists for the next call, from as much of the rest as one call may have. Must not be called
    // when over().
    void fill();
    std::span<const iovec> here() const { return here_.used(); }
    std::span<const iovec> there() const { return there_.used(); }
    // The call moved this many bytes from the start of the lists. It may be fewer than all, and may end
    // inside a piece.
    void moved(std::size_t bytes);
    // The first byte that is left. Must not be called when over().
    std::uint64_t address() const { return pieces_[first_].address + inside_; }

  private:
    struct List {
        std::size_t count = 0;
        std::array<iovec, most_entries> entries;

        std::span<const iovec> used() const { return {entries.data(), count}; }
        bool ends_at(const std::byte* place) const;
        bool has_room_for(const std::byte* place) const { return count < most_entries || ends_at(place); }
        void add(std::byte* place, std::size_t bytes);
    };
    // The bytes between this piece and the next if one call reads them too, else 0.
    std::size_t gap_after(std::size_t piece) const;
    void skip_empty();

    std::span<const ForeignPiece> pieces_;
    const bool joins_;
    std::size_t first_ = 0;   // piece
    std::size_t inside_ = 0;  // bytes of it that are done
    List here_, there_;
};

}  // namespace offpath::memory
