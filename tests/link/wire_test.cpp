// The wire form, byte by byte: the same on every architecture.
#include "link/wire.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace offpath::link {
namespace {

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
    std::vector<std::byte> bytes;
    for (int value : values)
        bytes.push_back(static_cast<std::byte>(value));
    return bytes;
}

Header data_header() {
    Header header;
    header.kind = Kind::data;
    header.token = 0x0123456789abcdef;
    header.position = 2 * part_bytes;
    header.id = 0x00050007;
    header.bytes = 1000;
    return header;
}

TEST(Wire, HeaderIsTheseBytes) {
    const auto expected = bytes_of({0x4f, 0x46, 0x4c, 0x4b, 1,    4,    0,    0,  // magic, version, kind, 0
                                    0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01,    // token
                                    0x00, 0x80, 0x07, 0x00, 0x00, 0x00, 0x00, 0x00,    // position
                                    0x07, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00, 0x00,    // id, count
                                    0xe8, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00});  // bytes, status
    const HeaderBytes made = encode_header(data_header());
    EXPECT_TRUE(std::ranges::equal(made, expected));
    Header read;
    ASSERT_TRUE(decode_header(expected, 1000, read));
    EXPECT_EQ(read, data_header());

    Header failed = data_header();
    failed.bytes = 0;
    failed.status = Status::access;
    const HeaderBytes with_status = encode_header(failed);
    const auto status = static_cast<std::uint32_t>(OFFPATH_ERR_ACCESS);
    for (int i = 0; i < 4; ++i)
        EXPECT_EQ(with_status[36 + static_cast<std::size_t>(i)], static_cast<std::byte>(status >> (8 * i)));
    ASSERT_TRUE(decode_header(with_status, 0, read));
    EXPECT_EQ(read, failed);
}

TEST(Wire, ItemsAreTheseBytes) {
    std::vector<std::byte> bytes(24);
    encode_item(CompletionItem{0x01020304, 2, 3, 0xffffffff, 0x1122334455667788}, bytes);
    EXPECT_EQ(bytes, bytes_of({4,    3,    2,    1,    2,    0,    0,    0,    3,    0,    0,    0,
                               0xff, 0xff, 0xff, 0xff, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11}));
    EXPECT_EQ(decode_item<CompletionItem>(bytes, 0),
              (CompletionItem{0x01020304, 2, 3, 0xffffffff, 0x1122334455667788}));
    bytes.resize(16);
    encode_item(FetchItem{0x7fff00001000, 9, 0x10000}, bytes);
    EXPECT_EQ(bytes, bytes_of({0, 0x10, 0, 0, 0xff, 0x7f, 0, 0, 9, 0, 0, 0, 0, 0, 1, 0}));
    EXPECT_EQ(decode_item<FetchItem>(bytes, 0), (FetchItem{0x7fff00001000, 9, 0x10000}));
    bytes.resize(8);
    encode_item(StoredItem{0x10, Status::ok}, bytes);
    EXPECT_EQ(bytes, bytes_of({0x10, 0, 0, 0, 0, 0, 0, 0}));
    encode_item(StoredItem{0x10, Status::access}, bytes);
    EXPECT_EQ(decode_item<StoredItem>(bytes, 0), (StoredItem{0x10, Status::access}));
    bytes[4] = std::byte{5};  // no status
    bytes[5] = bytes[6] = bytes[7] = std::byte{0};
    EXPECT_EQ(decode_item<StoredItem>(bytes, 0).status, Status::protocol);
    bytes.resize(24);
    encode_item(CopyItem{0x7fff00001000, 0x7fff00002000, 9, 0x10000}, bytes);
    EXPECT_EQ(bytes, bytes_of({0,    0x10, 0, 0, 0xff, 0x7f, 0, 0, 0, 0x20, 0, 0,
                               0xff, 0x7f, 0, 0, 9,    0,    0, 0, 0, 0,    1, 0}));
    EXPECT_EQ(decode_item<CopyItem>(bytes, 0), (CopyItem{0x7fff00001000, 0x7fff00002000, 9, 0x10000}));
}

TEST(Wire, RefusesWhatIsNone) {
    const HeaderBytes good = encode_header(data_header());
    Header read;
    for (std::size_t place : {0, 3, 4, 5, 6, 7, 29, 39}) {  // magic, version, kind, zero, count, status
        HeaderBytes bad = good;
        bad[place] ^= std::byte{0x40};
        EXPECT_FALSE(decode_header(bad, 1000, read)) << place;
    }
    EXPECT_FALSE(decode_header(good, 999, read));
    EXPECT_FALSE(decode_header(std::span(good).first(39), 1000, read));
    EXPECT_FALSE(decode_header({}, 0, read));

    const auto refused = [&](auto change) {
        Header header = data_header();
        change(header);
        return !decode_header(encode_header(header), header.bytes, read);
    };
    EXPECT_FALSE(refused([](Header&) {}));
    EXPECT_TRUE(refused([](Header& h) { h.bytes = part_bytes + 1; }));
    EXPECT_TRUE(refused([](Header& h) { h.bytes = 0; }));
    EXPECT_TRUE(refused([](Header& h) { h.status = Status::access; })) << "an error with data";
    EXPECT_TRUE(refused([](Header& h) { h.position = max_fetch_bytes; }));
    EXPECT_TRUE(refused([](Header& h) { h.kind = Kind::commands; })) << "commands have no id";
    const auto items = [&](Kind kind, std::uint32_t count, std::uint32_t bytes) {
        Header header;
        header.kind = kind;
        header.count = count;
        header.bytes = bytes;
        return decode_header(encode_header(header), bytes, read);
    };
    EXPECT_TRUE(items(Kind::completions, 0, 0));
    EXPECT_TRUE(items(Kind::completions, 2, 48));
    EXPECT_FALSE(items(Kind::completions, 2, 47));
    EXPECT_FALSE(items(Kind::completions, 0x0aaaaaab, 8)) << "a product that wraps around";
    EXPECT_FALSE(items(Kind::fetch, 0, 0));
    EXPECT_TRUE(items(Kind::fetch, 512, 8192));
    EXPECT_FALSE(items(Kind::fetch, 513, 513 * 16));
    EXPECT_TRUE(items(Kind::stored, 1, 8));
    EXPECT_FALSE(items(Kind::commands, 0, 7));
    EXPECT_FALSE(items(Kind::commands, 0, 33 << 10));
}

// Any bytes that can be decoded encode to the same bytes again, so nothing is ignored.
TEST(Wire, RandomBytesDecodeToThemselvesOrNotAtAll) {
    std::mt19937_64 random(7);
    int decoded = 0;
    for (int i = 0; i < 200000; ++i) {
        HeaderBytes bytes = encode_header(data_header());
        for (int n = static_cast<int>(random() % 4); n >= 0; --n)
            bytes[random() % bytes.size()] = static_cast<std::byte>(random());
        Header read;
        if (!decode_header(bytes, 1000, read)) continue;
        ++decoded;
        ASSERT_EQ(encode_header(read), bytes);
    }
    EXPECT_GT(decoded, 1000);
}

}  // namespace
}  // namespace offpath::link
