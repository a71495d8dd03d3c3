// What a target host makes of requests whose numbers lie.
#include "target/host/requests.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>

namespace offpath::target {
namespace {

// Has the bytes that were said, then is lost.
class Said final : public Line {
  public:
    std::size_t write(std::span<const std::byte> data) override { return data.size(); }
    std::size_t read(std::span<std::byte> room) override {
        const std::size_t count = std::min(room.size(), bytes.size() - at_);
        if (count > 0) std::memcpy(room.data(), bytes.data() + at_, count);
        at_ += count;
        return count;
    }
    bool readable() override { return at_ < bytes.size(); }
    void attend() override {}
    void leave() override {}
    void sleep(std::uint64_t) override {}
    void wake() override {}
    bool drained() override { return true; }
    bool lost() override { return !readable(); }
    void hang_up() override {}

    std::vector<std::byte> bytes;

  private:
    std::size_t at_ = 0;
};

struct Asked final : RequestHandler {
    Said line;
    Requests requests{line, *this};
    std::vector<std::string> names, refused;
    std::size_t image_bytes = 0, found = 0, images_wanted = 0;
    std::deque<Work> queued;
    std::vector<std::byte> memory;  // where puts go at once

    void find_image(std::uint64_t, const FindImage&) override { ++images_wanted; }
    void load_image(std::uint64_t, const LoadImage&, std::span<const std::byte> image) override {
        image_bytes = image.size();
    }
    void load_library(std::uint64_t, const std::string& name) override { names = {name}; }
    void find_symbols(std::uint64_t, const FindSymbols&, std::span<const std::string> wanted) override {
        names.assign(wanted.begin(), wanted.end());
        ++found;
    }
    void allocate(std::uint64_t, const Allocate&) override {}
    void map_file(std::uint64_t, const MapFile&) override {}
    void part(std::uint64_t, const Part&) override {}
    void unify(std::uint64_t, std::span<const AddressRange>) override {}
    void fetched(std::uint64_t, std::span<const std::byte>) override {}
    std::span<std::byte> place(std::uint32_t, const Put&, std::uint64_t bytes) override {
        return bytes <= memory.size() ? std::span(memory).first(bytes) : std::span<std::byte>();
    }
    void queue(std::uint32_t, Work work) override { queued.push_back(std::move(work)); }
    void refuse(std::uint64_t, Status status, const std::string& why) override {
        EXPECT_NE(status, Status::ok);
        refused.push_back(why);
    }

    // `claimed`: what the record says beyond its payload.
    template <typename Body>
    void say(const Body& body, std::string_view payload = {}, std::uint64_t claimed = 0) {
        append_record(line.bytes, 1, 1, body, std::as_bytes(std::span(payload)), claimed);
    }
    int handle() {
        int count = 0;
        while (requests.next() == Requests::Next::request)
            ++count;
        return count;
    }
};

constexpr std::uint64_t huge = std::uint64_t{1} << 62;
constexpr std::string_view two_names("one\0two\0", 8);

TEST(Requests, NamesOfSymbolsAreCounted) {
    Asked world;
    world.say(FindSymbols{1, 2}, two_names);
    EXPECT_EQ(world.handle(), 1);
    EXPECT_EQ(world.names, (std::vector<std::string>{"one", "two"}));
    world.say(FindSymbols{1, 1}, two_names);
    world.say(FindSymbols{1, 3}, two_names);
    world.say(FindSymbols{1, huge}, two_names);
    EXPECT_EQ(world.handle(), 3);
    EXPECT_EQ(world.found, 1U);
    EXPECT_EQ(world.refused.size(), 3U);
}

// Nothing is allocated for bytes that were claimed and do not come: these sizes cannot be.
TEST(Requests, ClaimedBytesTakeNoMemory) {
    Asked world;
    world.say(FindSymbols{1, 2}, two_names, huge);
    EXPECT_EQ(world.handle(), 1);
    for (int kind = 0; kind < 4; ++kind) {
        Asked other;
        if (kind == 0) other.say(LoadImage{}, "image", huge);
        if (kind == 1) other.say(Put{64}, "data", huge);
        if (kind == 2) other.say(Call{64}, "argument", huge);
        if (kind == 3) other.say(LoadLibrary{}, "name", huge);
        EXPECT_EQ(other.handle(), 1) << kind;
        EXPECT_TRUE(other.queued.empty()) << kind;
    }
}

// The program learns it before it sends the image.
TEST(Requests, TooLargeAnImageIsRefused) {
    Asked world;
    world.say(FindImage{{}, {}, max_image_bytes});
    world.say(FindImage{{}, {}, max_image_bytes + 1});
    EXPECT_EQ(world.handle(), 2);
    EXPECT_EQ(world.images_wanted, 1U);
    ASSERT_EQ(world.refused.size(), 1U);
    EXPECT_NE(world.refused[0].find("at most 1073741824"), std::string::npos) << world.refused[0];
}

TEST(Requests, DataOfAPutIsQueuedInPieces) {
    Asked world;
    const std::string data = std::string(data_piece, 'a') + "end";
    world.say(Put{4096}, data);
    world.memory.resize(8);
    world.say(Put{64}, "at once");
    EXPECT_EQ(world.handle(), 2);
    ASSERT_EQ(world.queued.size(), 2U);
    const auto& last = std::get<PutWork>(world.queued.back());
    EXPECT_EQ(last.address, 4096 + data_piece);
    EXPECT_EQ(std::memcmp(last.data.data(), "end", 3), 0);
    EXPECT_EQ(std::memcmp(world.memory.data(), "at once", 7), 0);
}

TEST(Requests, WhatIsNoRequestIsBroken) {
    Asked world;
    world.say(Done{});
    EXPECT_EQ(world.requests.next(), Requests::Next::broken);
    Asked shorter;
    Head head;
    head.kind = Kind::put;
    head.bytes = sizeof(Put) - 1;
    shorter.line.bytes.assign(sizeof head + sizeof(Put), std::byte{0});
    std::memcpy(shorter.line.bytes.data(), &head, sizeof head);
    EXPECT_EQ(shorter.requests.next(), Requests::Next::broken);
}

}  // namespace
}  // namespace offpath::target
