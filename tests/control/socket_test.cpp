// The directory of a daemon's files: it is made private, and refused if other users could put links into it.
#include "control/socket.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace offpath::control {
namespace {

TEST(OwnDirectory, IsMadePrivateAndRefusedWhereOthersWrite) {
    char base[] = "/tmp/offpath-test-XXXXXX";
    ASSERT_NE(mkdtemp(base), nullptr);
    const std::string directory = std::string(base) + "/session";
    std::string problem;
    EXPECT_EQ(own_directory(directory, problem), Status::ok) << problem;
    struct stat made {};
    ASSERT_EQ(stat(directory.c_str(), &made), 0);
    EXPECT_EQ(made.st_mode & 0777, 0700u);
    EXPECT_EQ(own_directory(directory, problem), Status::ok) << "it may be there already";

    ASSERT_EQ(chmod(directory.c_str(), 0777), 0);
    EXPECT_EQ(own_directory(directory, problem), Status::access);
    EXPECT_NE(problem.find("others may write"), std::string::npos) << problem;
    ASSERT_EQ(chmod(directory.c_str(), 01777), 0);
    EXPECT_EQ(own_directory(directory, problem), Status::ok) << "as /tmp is";

    EXPECT_EQ(own_directory(directory + "/a/b", problem), Status::system);
    std::filesystem::remove_all(base);
}

}  // namespace
}  // namespace offpath::control
