#include "memory/piece_lists.h"

#include "memory/file.h"

#include <algorithm>

namespace offpath::memory {
namespace {

std::uint64_t page_of(std::uint64_t address) {
    return address / page_bytes();
}

// A place for the bytes of gaps. It is never read.
std::byte* nobody_looks() {
    thread_local std::array<std::byte, PieceLists::most_gap_bytes> place;
    return place.data();
}

}  // namespace

PieceLists::PieceLists(std::span<const ForeignPiece> pieces, bool joins) : pieces_(pieces), joins_(joins) {
    skip_empty();
}

void PieceLists::skip_empty() {
    while (first_ < pieces_.size() && pieces_[first_].bytes == 0)
        ++first_;
}

// A gap must not touch a page that no piece touches, because that page may be missing.
std::size_t PieceLists::gap_after(std::size_t piece) const {
    if (!joins_ || piece + 1 == pieces_.size()) return 0;
    const ForeignPiece &one = pieces_[piece], &next = pieces_[piece + 1];
    const std::uint64_t end = one.address + one.bytes;
    if (one.bytes == 0 || next.bytes == 0 || next.address <= end || next.address - end > most_gap_bytes)
        return 0;
    return page_of(next.address) - page_of(end - 1) <= 1 ? next.address - end : 0;
}

bool PieceLists::List::ends_at(const std::byte* place) const {
    if (count == 0) return false;
    const iovec& last = entries[count - 1];
    return static_cast<std::byte*>(last.iov_base) + last.iov_len == place;
}

void PieceLists::List::add(std::byte* place, std::size_t bytes) {
    if (ends_at(place)) {
        entries[count - 1].iov_len += bytes;
    } else {
        entries[count++] = {place, bytes};
    }
}

void PieceLists::fill() {
    here_.count = there_.count = 0;
    std::size_t left = most_bytes, inside = inside_, gap = 0;
    for (std::size_t i = first_; i < pieces_.size() && left > gap; ++i) {
        const ForeignPiece& piece = pieces_[i];
        if (piece.bytes == 0) continue;
        // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses of another process arrive as numbers
        auto* const from = reinterpret_cast<std::byte*>(piece.address + inside - gap);
        std::byte* const to = piece.local + inside;
        if (gap > 0 ? here_.count + 2 > most_entries : !here_.has_room_for(to)) return;
        if (!there_.has_room_for(from)) return;
        if (gap > 0) here_.add(nobody_looks(), gap);
        const std::size_t bytes = std::min(piece.bytes - inside, left - gap);
        here_.add(to, bytes);
        there_.add(from, gap + bytes);
        left -= gap + bytes;
        inside = 0;
        gap = gap_after(i);
    }
}

void PieceLists::moved(std::size_t bytes) {
    while (bytes > 0 && !over()) {
        const std::size_t now = std::min(bytes, pieces_[first_].bytes - inside_);
        inside_ += now;
        bytes -= now;
        if (inside_ < pieces_[first_].bytes) return;
        bytes -= std::min(bytes, gap_after(first_));
        ++first_;
        inside_ = 0;
        skip_empty();
    }
}

}  // namespace offpath::memory
