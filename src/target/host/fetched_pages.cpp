#include "target/host/fetched_pages.h"

#include "target/record_io.h"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace offpath::target {
std::size_t LocalProgram::read(std::uint64_t address, std::span<std::byte> into) {
    const iovec here{into.data(), into.size()}, there{reinterpret_cast<void*>(address), into.size()};
    const ssize_t got = process_vm_readv(pid_, &here, 1, &there, 1, 0);
    return got > 0 ? static_cast<std::size_t>(got) : 0;
}

bool LocalProgram::write(std::span<const memory::ForeignPiece> pieces) {
    memory::PieceLists lists(pieces, false);
    while (!lists.over()) {
        lists.fill();
        const auto here = lists.here(), there = lists.there();
        const ssize_t moved =
            process_vm_writev(pid_, here.data(), here.size(), there.data(), there.size(), 0);
        if (moved < 0 && errno == EINTR) continue;
        if (moved <= 0) return false;
        lists.moved(static_cast<std::size_t>(moved));
    }
    return true;
}

std::size_t FetchedPages::fetch(std::uint64_t address, std::span<std::byte> into) {
    Wanted wanted{into};
    std::uint64_t number;
    {
        std::lock_guard lock(mutex_);
        number = ++last_;
        wanted_[number] = &wanted;
    }
    std::vector<std::byte> record;
    append_record(record, number, 0, Fetch{address, into.size()});
    send_(record);
    std::unique_lock lock(mutex_);
    while (!wanted.done && !over_())
        changed_.wait_for(lock, std::chrono::milliseconds(100));
    wanted_.erase(number);
    return wanted.got;
}

void FetchedPages::arrived(std::uint64_t number, std::span<const std::byte> bytes) {
    std::lock_guard lock(mutex_);
    const auto found = wanted_.find(number);
    if (found == wanted_.end()) return;
    Wanted& wanted = *found->second;
    wanted.got = std::min(bytes.size(), wanted.into.size());
    std::memcpy(wanted.into.data(), bytes.data(), wanted.got);
    wanted.done = true;
    changed_.notify_all();
}

void FetchedPages::store(std::span<const memory::ForeignPiece> pieces) {
    std::vector<Piece> heads;
    std::vector<std::byte> bytes, record;
    const auto flush = [&] {
        record.clear();
        append_record(record, 0, 0, Store{heads.size()}, std::as_bytes(std::span(heads)), bytes.size());
        record.insert(record.end(), bytes.begin(), bytes.end());
        send_(record);
        heads.clear();
        bytes.clear();
    };
    for (const memory::ForeignPiece& piece : pieces)
        for (std::size_t done = 0; done < piece.bytes;) {
            if (heads.size() == max_stored_pieces || bytes.size() == max_stored_bytes) flush();
            const std::size_t part = std::min(piece.bytes - done, max_stored_bytes - bytes.size());
            heads.push_back({piece.address + done, part});
            bytes.insert(bytes.end(), piece.local + done, piece.local + done + part);
            done += part;
        }
    if (!heads.empty()) flush();
}

}  // namespace offpath::target
