// Which libraries clients on other systems may load.
#include "proxy/kernel_places.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace offpath::proxy {
namespace {

namespace fs = std::filesystem;

class KernelPlaces : public ::testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/offpath-test-XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        root = fs::canonical(name);
        for (const char* folder : {"a", "ab", "b", "b/deep"})
            fs::create_directory(root / folder);
        for (const char* file : {"a/one.so", "ab/no.so", "b/two.so", "b/deep/three.so", "out.so"})
            std::ofstream(root / file) << "x";
        fs::create_symlink(root / "out.so", root / "a/link.so");
        fs::create_symlink(root / "b/two.so", root / "a/inside.so");
        ASSERT_EQ(parse_kernel_places((root / "a").string() + ":" + (root / "b").string(), places, why),
                  Status::ok)
            << why;
    }
    void TearDown() override { fs::remove_all(root); }
    std::string find(const std::string& path) {
        std::string library;
        const Status status = find_kernel_library(places, path, library, why);
        return status == Status::ok ? library : std::string("refused");
    }
    std::string at(const char* path) const { return (root / path).string(); }
    fs::path root;
    std::vector<std::string> places;
    std::string why;
};

TEST_F(KernelPlaces, TakesWhatLiesThere) {
    EXPECT_EQ(find(at("a/one.so")), at("a/one.so"));
    EXPECT_EQ(find("one.so"), at("a/one.so"));
    EXPECT_EQ(find("two.so"), at("b/two.so"));
    EXPECT_EQ(find("deep/three.so"), at("b/deep/three.so"));
    EXPECT_EQ(find(at("a/inside.so")), at("b/two.so"));
}

TEST_F(KernelPlaces, RefusesWhatLiesElsewhere) {
    for (const std::string& path :
         {std::string("libc.so.6"), at("out.so"), at("ab/no.so"), at("a/link.so"), at("a/../out.so"),
          std::string("../out.so"), at("b/deep"), at("a/none.so"), std::string("link.so"),
          std::string("/usr/lib/x86_64-linux-gnu/libc.so.6")})
        EXPECT_EQ(find(path), "refused") << path;
    places.clear();
    EXPECT_EQ(find(at("a/one.so")), "refused");
}

TEST_F(KernelPlaces, RefusesWhatIsNoDirectory) {
    std::vector<std::string> other;
    for (const std::string& list : {std::string(), at("a") + ":", at("a/one.so"), at("none")})
        EXPECT_EQ(parse_kernel_places(list, other, why), Status::unavailable) << list;
    EXPECT_EQ(parse_kernel_places("/", other, why), Status::ok);
    places = {"/"};
    EXPECT_EQ(find(at("out.so")), at("out.so"));
}

}  // namespace
}  // namespace offpath::proxy
