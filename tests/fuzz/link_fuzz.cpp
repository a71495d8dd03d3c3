// What the two ends of a link to a remote device receive. A device gets commands, data and answers of a
// client that knows its token; a client gets completions and requests of its device, which may name any
// memory of the client by the link's trust: here they name an arena, or memory that does not exist. No end
// reads beyond a message, and a transfer ends at most once.
#include "link/device_links.h"
#include "link/host.h"
#include "link/wire.h"
#include "once.h"
#include "played_transport.h"
#include "quiet.h"

#include <array>
#include <bit>

namespace {

using namespace offpath;
using namespace offpath::link;
using fuzz::Input;
using fuzz::Once;
using fuzz::PlayedTransport;
using fuzz::require;

constexpr std::uint64_t token = 0x1122334455667788;
constexpr std::size_t arena_bytes = 16 << 10;
const control::ChannelSizes sizes{.completions = 128,
                                  .ring_bytes = std::bit_ceil(4 * control::max_record_bytes)};

struct Told {
    HeaderBytes header;
    std::vector<std::byte> payload;
    bool by_fetch = false;
};

// A message of a link as the input has it, with the right token and sizes where the input says so. Addresses
// client's memory lie in `arena`, or in the first page, where nothing is. Data may be a part of `transfer`
// bytes.
Told drawn(Input& input, const std::byte* arena, std::size_t transfer,
           const std::vector<std::uint32_t>& ids) {
    const auto mended = input.take<std::uint8_t>();
    Header header;
    header.kind = static_cast<Kind>(1 + input.below(7));
    header.token = (mended & 1) != 0 ? token : input.take<std::uint64_t>();
    header.position = input.take<std::uint64_t>();
    if ((mended & 2) != 0) header.position %= 40;
    header.id = (mended & 4) != 0 ? input.take<std::uint8_t>() % 4 : input.take<std::uint32_t>();
    header.count = input.take<std::uint8_t>();
    if (header.kind == Kind::data && (mended & 2) != 0) header.position *= part_bytes;
    header.status = (mended & 8) != 0 ? Status::ok : static_cast<Status>(-static_cast<int>(input.below(12)));
    if ((mended & 4) != 0) {
        const bool has_items =
            header.kind != Kind::commands && header.kind != Kind::data && header.kind != Kind::store;
        if (!has_items) header.count = 0;
        if (has_items || header.kind == Kind::commands) header.id = 0;
        if (has_items && header.kind != Kind::completions) header.position = 0;
        if (header.kind != Kind::data) header.status = Status::ok;
    }
    if ((mended & 4) != 0 && header.kind == Kind::data && !ids.empty())
        header.id = ids[ids.size() - 1 - header.id % std::min<std::size_t>(ids.size(), 4)];
    Told told;
    const auto place = [&](std::size_t at) {
        if (at + 8 > told.payload.size()) return;
        std::uint64_t address = 0;
        std::memcpy(&address, told.payload.data() + at, sizeof address);
        address = (mended & 16) != 0 ? address % 4096
                                     : reinterpret_cast<std::uint64_t>(arena) + address % (arena_bytes / 2);
        std::memcpy(told.payload.data() + at, &address, sizeof address);
    };
    const auto bound = [&](std::size_t at) {
        if (at + 4 > told.payload.size()) return;
        std::uint32_t length = 0;
        std::memcpy(&length, told.payload.data() + at, sizeof length);
        length %= arena_bytes / 2;
        std::memcpy(told.payload.data() + at, &length, sizeof length);
    };
    std::size_t item = 0;
    switch (header.kind) {
        case Kind::completions:
            item = wire_bytes<CompletionItem>;
            break;
        case Kind::fetch:
            item = wire_bytes<FetchItem>;
            break;
        case Kind::stored:
            item = wire_bytes<StoredItem>;
            break;
        case Kind::copy:
            item = wire_bytes<CopyItem>;
            break;
        default:
            break;
    }
    std::size_t bytes = item != 0 ? item * header.count : input.below(arena_bytes / 2);
    if (header.kind == Kind::data && (mended & 32) != 0 && header.position <= transfer)
        bytes = std::min<std::size_t>(part_bytes, transfer - header.position);
    told.payload = (mended & 32) != 0 ? input.payload(bytes) : input.bytes(input.below(100));
    if ((mended & 4) != 0 && header.kind == Kind::stored && !ids.empty() && told.payload.size() >= 4)
        std::memcpy(told.payload.data(), &ids.back(), sizeof ids.back());
    for (std::size_t at = 0; item != 0 && at + item <= told.payload.size(); at += item) {
        if (header.kind == Kind::fetch) {
            place(at);
            bound(at + 12);
        }
        if (header.kind == Kind::copy) {
            place(at);
            place(at + 8);
            bound(at + 20);
        }
    }
    if (header.kind == Kind::store) {
        header.position = (mended & 16) != 0
                              ? header.position % 4096
                              : reinterpret_cast<std::uint64_t>(arena) + header.position % (arena_bytes / 2);
    }
    header.bytes = static_cast<std::uint32_t>(told.payload.size());
    told.header = encode_header(header);
    if ((mended & 64) != 0) told.header[input.below(told.header.size())] ^= input.take<std::byte>();
    // The magic, the token and the address decide where a store goes: a flaw in them would be this program's.
    if (header.kind == Kind::store) told.header = encode_header(header);
    told.by_fetch = (mended & 128) != 0;
    return told;
}

// The ids of requests in messages that a device has sent.
void note_ids(std::deque<PlayedTransport::Sent>& sent, std::vector<std::uint32_t>& ids) {
    for (; !sent.empty(); sent.pop_front()) {
        Header header;
        if (!decode_header(sent.front().header, sent.front().payload.size(), header)) continue;
        if (header.kind == Kind::store) ids.push_back(header.id);
        for (std::uint32_t i = 0; header.kind == Kind::fetch && i < header.count; ++i)
            ids.push_back(decode_item<FetchItem>(sent.front().payload, i).id);
    }
}

void as_device(Input& input) {
    auto made = std::make_unique<PlayedTransport>();
    PlayedTransport* const transport = made.get();
    const auto links = make_device_links(std::move(made), nullptr);
    std::unique_ptr<DeviceLink> link;
    std::string problem;
    require(links->open(std::vector<std::byte>(8), token, sizes, link, problem) == Status::ok, "open");
    auto channel = link->take_channel();
    auto transfers = link->take_transfers();
    std::deque<std::unique_ptr<std::byte[]>> local;
    const std::vector<std::byte> host(arena_bytes);
    std::deque<Once> done;
    std::vector<std::uint32_t> ids;
    std::size_t started = 0, size = 0;
    while (!input.empty()) {
        const auto step = input.take<std::uint8_t>();
        if (step < 24 && started < 40) {
            size = 1 +
                   (step % 4 < 2 ? input.below(9000) : input.take<std::uint32_t>() % (2 * part_bytes + 1000));
            // Of its own size, so that the sanitizer sees what is written beside it.
            local.emplace_back(new std::byte[size]);
            const auto direction = static_cast<memory::StagingDirection>(1 + step % 2);
            Once& one = done.emplace_back();
            const Status status = transfers->start(direction, reinterpret_cast<std::uint64_t>(host.data()),
                                                   local.back().get(), size, &one);
            if (status != Status::in_progress) one.called = true;
            ++started;
        } else if (step < 32) {
            transport->lose_all();
        } else {
            const Told told = drawn(input, host.data(), size, ids);
            transport->say(told.header, told.payload, told.by_fetch);
        }
        links->progress();
        transfers->progress();
        std::span<const std::byte> record;
        while (channel->next(record) == control::NextRecord::record) {
            std::size_t sum = 0;
            for (const std::byte byte : record)
                sum += std::to_integer<std::size_t>(byte);
            require(sum <= record.size() * 255, "a record has no bytes");
        }
        note_ids(transport->sent, ids);
    }
    transfers->stop(Status::canceled);
    for (int i = 0; i < 4; ++i) {
        links->progress();
        transfers->progress();
    }
    transfers->abandon(Status::canceled);
    for (const Once& one : done)
        require(one.called, "a transfer has not ended");
    require(transport->settled(), "a payload was neither fetched nor discarded");
}

void as_client(Input& input) {
    auto made = std::make_unique<PlayedTransport>();
    PlayedTransport* const transport = made.get();
    std::vector<std::byte> arena(arena_bytes);
    Host host(std::move(made), nullptr);
    std::unique_ptr<control::ClientChannel> channel;
    std::string problem;
    require(host.connect(std::vector<std::byte>(8), token, sizes, channel, problem) == Status::ok, "connect");
    while (!input.empty()) {
        if (input.take<std::uint8_t>() < 8) {
            transport->lose_all();
        } else {
            const Told told = drawn(input, arena.data(), 0, {});
            transport->say(told.header, told.payload, told.by_fetch);
        }
        transport->progress();
        transport->sent.clear();
    }
    for (int i = 0; i < 4; ++i)
        transport->progress();
    channel.reset();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::be_quiet();
    Input input(data, size);
    if (input.take<std::uint8_t>() % 2 == 0) {
        as_device(input);
    } else {
        as_client(input);
    }
    return 0;
}
