// Images of a program in its target host, and how they are named.
#include "target/host/images.h"

#include <gtest/gtest.h>

#include <fstream>
#include <vector>

namespace offpath::target {
namespace {

std::vector<std::byte> content_of(const char* path) {
    std::ifstream file(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

struct ImagesTest : ::testing::Test {
    std::uint64_t load(std::span<const std::byte> image) {
        memory::File file;
        std::uint64_t module = 0;
        EXPECT_EQ(Images::make_file(image, file, problem), Status::ok);
        EXPECT_EQ(images.load(name_of(secret_of(image)), std::move(file), module, problem), Status::ok)
            << problem;
        return module;
    }
    int call(std::uint64_t module) {
        void* const function = images.symbol(module, "which_image");
        return function != nullptr ? reinterpret_cast<int (*)()>(function)() : 0;
    }
    Images images;
    std::string problem;
};

TEST_F(ImagesTest, EachIsItself) {
    const auto one = content_of(OFFPATH_IMAGE_ONE), two = content_of(OFFPATH_IMAGE_TWO);
    ASSERT_FALSE(one.empty());
    const std::uint64_t first = load(one), second = load(two);
    EXPECT_EQ(call(first), 1);
    EXPECT_EQ(call(second), 2);
    EXPECT_EQ(load(one), first);
    EXPECT_EQ(images.find(name_of(secret_of(two))), second);
}

TEST_F(ImagesTest, WhatIsNoImageIsRefused) {
    const auto text = std::as_bytes(std::span("no image"));
    memory::File file;
    std::uint64_t module = 0;
    ASSERT_EQ(Images::make_file(text, file, problem), Status::ok);
    EXPECT_EQ(images.load(name_of(secret_of(text)), std::move(file), module, problem), Status::invalid);
    EXPECT_EQ(problem, "the image is not an ELF file");
}

TEST(ImageNames, DependOnContentAndNonce) {
    const auto text = std::as_bytes(std::span("an image in two pieces"));
    ImageHash hash;
    hash.add(text.first(10));
    hash.add(text.subspan(10));
    const ImageSecret secret = hash.secret();
    EXPECT_EQ(secret, secret_of(text));
    EXPECT_NE(secret, secret_of(text.first(10)));
    EXPECT_NE(name_of(secret), secret);
    const ImageNonce nonce{std::byte{1}}, other{std::byte{2}};
    EXPECT_TRUE(proves(prove(secret, nonce), secret, nonce));
    EXPECT_FALSE(proves(prove(secret, nonce), secret, other));
    EXPECT_FALSE(proves(prove(name_of(secret), nonce), secret, nonce));
}

}  // namespace
}  // namespace offpath::target
