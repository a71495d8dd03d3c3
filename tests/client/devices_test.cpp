// OFFPATH_DEVICES: which device serves a node.
#include "client/devices.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace offpath::client {
namespace {

std::string found(const std::string& setting, const std::string& node) {
    control::TcpAddress address;
    std::string problem;
    return find_device(setting, node, address, problem) == Status::ok ? control::to_string(address)
                                                                      : "error: " + problem;
}

Status status_of(const std::string& setting, const std::string& node) {
    control::TcpAddress address;
    std::string problem;
    const Status status = find_device(setting, node, address, problem);
    EXPECT_FALSE(status != Status::ok && problem.empty()) << setting;
    return status;
}

TEST(Devices, OneForAllNodes) {
    EXPECT_EQ(found("10.0.0.2", "n1"), "10.0.0.2:7471");
    EXPECT_EQ(found("10.0.0.2:99", "n2"), "10.0.0.2:99");
    EXPECT_EQ(found("[fd00::2]:99", "n2"), "[fd00::2]:99");
}

TEST(Devices, ByHostName) {
    const std::string list = "n1=10.0.0.1,n2=10.0.0.2:99,n3.example.org=[fd00::2]:8";
    EXPECT_EQ(found(list, "n1"), "10.0.0.1:7471");
    EXPECT_EQ(found(list, "n2"), "10.0.0.2:99");
    EXPECT_EQ(found(list, "n2.example.org"), "10.0.0.2:99");
    EXPECT_EQ(found(list, "n3"), "[fd00::2]:8");
    EXPECT_EQ(status_of(list, "n3.example.com"), Status::unavailable) << "another domain";
    EXPECT_EQ(found("n1=1.1.1.1,n1.b=2.2.2.2", "n1.b"), "2.2.2.2:7471") << "the whole name goes first";
}

TEST(Devices, ThatAreNotListedAreNamed) {
    const std::string text = found("n1=10.0.0.1,n2=10.0.0.2", "n9");
    EXPECT_NE(text.find("node n9 is not in OFFPATH_DEVICES, which lists n1, n2"), std::string::npos) << text;
    std::string many = "a0=1.1.1.1";
    for (int i = 1; i < 100; ++i)
        many += ",a" + std::to_string(i) + "=1.1.1.1";
    EXPECT_NE(found(many, "b").find("a7 and 92 more"), std::string::npos) << found(many, "b");
}

TEST(Devices, WrittenWrongAreRefused) {
    for (const char* setting :
         {"", "a b", "n1=", "=10.0.0.1", "n1=10.0.0.1,", "n1=10.0.0.1,,n2=10.0.0.2", "n1=10.0.0.1,10.0.0.2",
          "n1=1.1.1.1,n1=2.2.2.2", "n1=host:99999", "10.0.0.1,10.0.0.2"})
        EXPECT_EQ(status_of(setting, "n1"),
                  setting == std::string("n1=10.0.0.1,") ? Status::ok : Status::invalid)
            << setting;
}

TEST(Devices, FromAFile) {
    char name[] = "/tmp/offpath-test-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    const std::string path = std::string(name) + "/devices";
    const auto write = [&](const char* text) { std::ofstream(path) << text; };
    write("# our cards\nn1 10.0.0.1\n\n  n2\t10.0.0.2:99 # the new one\n");
    EXPECT_EQ(found("@" + path, "n1"), "10.0.0.1:7471");
    EXPECT_EQ(found("@" + path, "n2"), "10.0.0.2:99");
    EXPECT_NE(found("@" + path, "n3").find("node n3 is not in OFFPATH_DEVICES=@" + path), std::string::npos);
    for (const char* text : {"n1\n", "n1 10.0.0.1 more\n", "n1 a:b:c\n", "n1 1.1.1.1\nn1 2.2.2.2\n"}) {
        write(text);
        EXPECT_EQ(status_of("@" + path, "n1"), Status::invalid) << text;
        EXPECT_NE(found("@" + path, "n1").find(", line "), std::string::npos) << found("@" + path, "n1");
    }
    write("");
    EXPECT_NE(found("@" + path, "n1").find("which lists none"), std::string::npos);
    EXPECT_EQ(status_of("@" + path + ".not", "n1"), Status::unavailable);
    std::filesystem::remove_all(name);
}

}  // namespace
}  // namespace offpath::client
