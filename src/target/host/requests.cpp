#include "target/host/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace offpath::target {
namespace {

std::string too_large(std::uint64_t image_bytes) {
    return fmt::format("an image of {} bytes; at most {} are accepted", image_bytes, max_image_bytes);
}

}  // namespace

Requests::Next Requests::next() {
    Head head;
    if (!reader_.next(head)) return Next::none;
    switch (head.kind) {
        case Kind::find_image:
            return read<FindImage>(head);
        case Kind::load_image:
            return read<LoadImage>(head);
        case Kind::load_library:
            return read<LoadLibrary>(head);
        case Kind::find_symbols:
            return read<FindSymbols>(head);
        case Kind::allocate:
            return read<Allocate>(head);
        case Kind::map_file:
            return read<MapFile>(head);
        case Kind::part:
            return read<Part>(head);
        case Kind::release:
            return read<Release>(head);
        case Kind::put:
            return read<Put>(head);
        case Kind::put_from:
            return read<PutFrom>(head);
        case Kind::get:
            return read<Get>(head);
        case Kind::copy:
            return read<Copy>(head);
        case Kind::call:
            return read<Call>(head);
        case Kind::sync:
            return read<Sync>(head);
        case Kind::unify:
            return read<Unify>(head);
        case Kind::fetched:
            return read<Fetched>(head);
        default:
            return Next::broken;
    }
}

template <typename Body>
Requests::Next Requests::read(const Head& head) {
    Body body;
    if (head.bytes < body_bytes<Body>()) return Next::broken;
    if constexpr (!std::is_empty_v<Body>) {
        if (!reader_.body(body)) return Next::request;
    }
    on(head, body, head.bytes - body_bytes<Body>());
    return Next::request;
}

// False: the line is lost.
bool Requests::take(std::uint64_t bytes, std::vector<std::byte>& payload) {
    while (payload.size() < bytes) {
        const std::size_t had = payload.size();
        payload.resize(had + std::min<std::uint64_t>(bytes - had, data_piece));
        if (!reader_.take(std::span(payload).subspan(had))) return false;
    }
    return true;
}

void Requests::refuse(const Head& head, std::uint64_t bytes, Status status, const std::string& why) {
    if (reader_.skip(bytes)) handler_.refuse(head.number, status, why);
}

void Requests::on(const Head& head, const FindImage& find, std::uint64_t bytes) {
    if (find.bytes > max_image_bytes) return refuse(head, bytes, Status::memory, too_large(find.bytes));
    if (reader_.skip(bytes)) handler_.find_image(head.number, find);
}

void Requests::on(const Head& head, const LoadImage& load, std::uint64_t bytes) {
    if (bytes > max_image_bytes) return refuse(head, bytes, Status::memory, too_large(bytes));
    std::vector<std::byte> image;
    if (take(bytes, image)) handler_.load_image(head.number, load, image);
}

void Requests::on(const Head& head, const LoadLibrary&, std::uint64_t bytes) {
    constexpr std::uint64_t max_name = 64;
    std::string name(std::min(bytes, max_name), '\0');
    if (reader_.take(std::as_writable_bytes(std::span(name))) && reader_.skip(bytes - name.size()))
        handler_.load_library(head.number, name);
}

void Requests::on(const Head& head, const FindSymbols& find, std::uint64_t bytes) {
    if (find.count > max_symbols || bytes > max_symbol_bytes)
        return refuse(head, bytes, Status::invalid,
                      fmt::format("{} symbols in {} bytes; at most {} in {} are accepted", find.count, bytes,
                                  max_symbols, max_symbol_bytes));
    std::vector<std::byte> text;
    if (!take(bytes, text)) return;
    std::vector<std::string> names;
    const auto* const begin = reinterpret_cast<const char*>(text.data());
    for (std::size_t at = 0; at < text.size() && names.size() <= find.count;) {
        names.emplace_back(begin + at, strnlen(begin + at, text.size() - at));
        at += names.back().size() + 1;
    }
    if (names.size() != find.count)
        return refuse(head, 0, Status::invalid, fmt::format("not the names of {} symbols", find.count));
    handler_.find_symbols(head.number, find, names);
}

void Requests::on(const Head& head, const Allocate& allocate, std::uint64_t bytes) {
    if (reader_.skip(bytes)) handler_.allocate(head.number, allocate);
}

void Requests::on(const Head& head, const MapFile& file, std::uint64_t bytes) {
    if (reader_.skip(bytes)) handler_.map_file(head.number, file);
}

void Requests::on(const Head& head, const Part& part, std::uint64_t bytes) {
    if (reader_.skip(bytes)) handler_.part(head.number, part);
}

void Requests::on(const Head& head, const Release& release, std::uint64_t bytes) {
    if (reader_.skip(bytes)) handler_.queue(head.stream, release);
}

void Requests::on(const Head& head, const Put& put, std::uint64_t bytes) {
    if (bytes == 0) return;
    if (const auto place = handler_.place(head.stream, put, bytes); !place.empty()) {
        reader_.take(place);
        return;
    }
    for (std::uint64_t done = 0; done < bytes;) {
        PutWork work{put.address + done, {}};
        if (!take(std::min<std::uint64_t>(bytes - done, data_piece), work.data)) return;
        done += work.data.size();
        handler_.queue(head.stream, std::move(work));
    }
}

void Requests::on(const Head& head, const PutFrom& put, std::uint64_t bytes) {
    if (reader_.skip(bytes)) handler_.queue(head.stream, PutFromWork{put, head.number});
}

void Requests::on(const Head& head, const Get& get, std::uint64_t bytes) {
    if (reader_.skip(bytes)) handler_.queue(head.stream, GetWork{get, head.number});
}

void Requests::on(const Head& head, const Copy& copy, std::uint64_t bytes) {
    if (reader_.skip(bytes)) handler_.queue(head.stream, copy);
}

// A call with too many arguments is an error of its stream, which is found when it is made.
void Requests::on(const Head& head, const Call& call, std::uint64_t bytes) {
    CallWork work{call.function,
                  std::vector<std::uint64_t>(std::min<std::uint64_t>(bytes / 8, max_arguments + 1))};
    const std::uint64_t taken = work.arguments.size() * sizeof(std::uint64_t);
    if (reader_.take(std::as_writable_bytes(std::span(work.arguments))) && reader_.skip(bytes - taken))
        handler_.queue(head.stream, std::move(work));
}

void Requests::on(const Head& head, const Sync& sync, std::uint64_t bytes) {
    if (reader_.skip(bytes)) handler_.queue(head.stream, SyncWork{head.number, sync.keeps_error != 0});
}

void Requests::on(const Head& head, const Unify&, std::uint64_t bytes) {
    std::vector<AddressRange> ranges(std::min<std::uint64_t>(bytes / sizeof(AddressRange), max_symbols));
    const std::uint64_t taken = ranges.size() * sizeof(AddressRange);
    if (reader_.take(std::as_writable_bytes(std::span(ranges))) && reader_.skip(bytes - taken))
        handler_.unify(head.number, ranges);
}

void Requests::on(const Head& head, const Fetched&, std::uint64_t bytes) {
    std::vector<std::byte> payload;
    const std::uint64_t taken = std::min<std::uint64_t>(bytes, max_fetch_bytes);
    if (take(taken, payload) && reader_.skip(bytes - taken)) handler_.fetched(head.number, payload);
}

}  // namespace offpath::target
