// Keys, the secret of a job and the MACs of the handshake. The expected values were computed with another
// implementation of HMAC-SHA256.
#include "control/authentication.h"

#include "bytes.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>

namespace offpath::control {
namespace {

Key counting_key() {
    std::vector<std::byte> bytes(32);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::byte>(i);
    return Key(bytes);
}

Nonce counting_nonce(int first) {
    Nonce nonce;
    for (std::size_t i = 0; i < nonce.size(); ++i)
        nonce[i] = static_cast<std::byte>(first + static_cast<int>(i));
    return nonce;
}

RemoteHello hello() {
    RemoteHello m;
    m.hello = {1, 2, 3, 4, 5, BackEndRequest::staged, 0, 0, {}};
    m.issued = 3;
    m.nonce = counting_nonce(0x20);
    m.link = {std::byte{1}, std::byte{2}, std::byte{3}};
    return m;
}

TEST(Authentication, SecretsAndMacsAreThoseOfHmacSha256) {
    const Secret secret = job_secret(counting_key(), 1, 2, 3);
    EXPECT_EQ(test::hex(secret), "c3ffb2ab0efce760ff27ab423af4dbfb3b20a0585d49bd0113539493643058f3");
    EXPECT_EQ(test::hex(fabric_secret(secret)),
              "6521c291c6c4aeb6f39e4ed2f1d990dd82ef001979d888cfc94e363bb92955f2");
    const RemoteHello m = hello();
    EXPECT_EQ(test::hex(handshake_mac(secret, counting_nonce(0x10), m.nonce, m)),
              "6d4b9d9d34d409cd7619d237c58e4b88945ab3c411832761cb57b8b4acf7e427");
}

TEST(Authentication, MacsDependOnEverything) {
    const Secret secret = job_secret(counting_key(), 1, 2, 3);
    const Nonce daemon = counting_nonce(0x10);
    RemoteHello m = hello();
    const Mac right = handshake_mac(secret, daemon, m.nonce, m);
    EXPECT_FALSE(same(right, handshake_mac(job_secret(counting_key(), 1, 3, 3), daemon, m.nonce, m)))
        << "the job";
    EXPECT_FALSE(same(right, handshake_mac(job_secret(counting_key(), 1, 2, 4), daemon, m.nonce, m)))
        << "when it was made";
    EXPECT_FALSE(same(right, handshake_mac(secret, counting_nonce(0x11), m.nonce, m)))
        << "the daemon's nonce";
    EXPECT_FALSE(same(right, handshake_mac(secret, daemon, counting_nonce(0), m))) << "the client's nonce";
    m.mac = right;
    EXPECT_TRUE(same(right, handshake_mac(secret, daemon, m.nonce, m))) << "not on the field for it";
    m.link.back() = std::byte{4};
    EXPECT_FALSE(same(right, handshake_mac(secret, daemon, m.nonce, m))) << "the message";
    m = hello();
    m.hello.job_rank = 2;
    EXPECT_FALSE(same(right, handshake_mac(secret, daemon, m.nonce, m))) << "the message";
    for (std::size_t i = 0; i < right.size(); ++i) {
        Mac other = right;
        other[i] ^= std::byte{0x80};
        EXPECT_FALSE(same(right, other));
    }
}

TEST(Authentication, NoncesAndTokensDiffer) {
    EXPECT_NE(draw_nonce(), draw_nonce());
    EXPECT_NE(draw_token(), draw_token());
}

class KeyFile : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/offpath-test-XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        directory = name;
        path = directory + "/key";
    }
    void TearDown() override { std::filesystem::remove_all(directory); }
    void write(std::size_t bytes, mode_t mode = 0600) {
        std::ofstream(path, std::ios::binary | std::ios::trunc) << std::string(bytes, 'k');
        ASSERT_EQ(chmod(path.c_str(), mode), 0);
    }
    Status read() {
        problem.clear();
        return read_key_file(path, key, problem);
    }
    std::string directory, path, problem;
    Key key;
};

TEST_F(KeyFile, IsReadWhole) {
    for (std::size_t bytes : {min_key_bytes, std::size_t{100}, max_key_bytes}) {
        write(bytes);
        ASSERT_EQ(read(), Status::ok) << problem;
        EXPECT_EQ(key.bytes().size(), bytes);
        EXPECT_EQ(key.bytes().back(), std::byte{'k'});
    }
    write(64, 0400);
    EXPECT_EQ(read(), Status::ok) << problem;
}

TEST_F(KeyFile, OfWrongLengthIsRefused) {
    for (std::size_t bytes : {std::size_t{0}, min_key_bytes - 1, max_key_bytes + 1}) {
        write(bytes);
        EXPECT_EQ(read(), Status::invalid);
        EXPECT_NE(problem.find("32 to 4096 are accepted"), std::string::npos) << problem;
        EXPECT_NE(problem.find(path), std::string::npos) << problem;
    }
    EXPECT_TRUE(key.empty());
}

TEST_F(KeyFile, ThatOthersMayReadOrWriteIsRefused) {
    for (mode_t mode : {0640, 0620, 0604, 0602, 0644, 0666}) {
        write(64, mode);
        EXPECT_EQ(read(), Status::access) << mode;
        EXPECT_NE(problem.find("chmod 600"), std::string::npos) << problem;
    }
}

TEST_F(KeyFile, OfSomebodyElseIsRefused) {
    if (geteuid() != 0) GTEST_SKIP() << "giving files away needs root";
    write(64);
    ASSERT_EQ(chown(path.c_str(), 12345, 0), 0);
    EXPECT_EQ(read(), Status::access);
    EXPECT_NE(problem.find("12345"), std::string::npos) << problem;
}

TEST_F(KeyFile, ThatIsNoFileIsRefused) {
    EXPECT_EQ(read(), Status::unavailable);
    EXPECT_NE(problem.find("No such file"), std::string::npos) << problem;
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    EXPECT_EQ(read(), Status::invalid) << "and it does not block";
    path = directory;
    EXPECT_EQ(read(), Status::invalid);
}

TEST_F(KeyFile, MayBeAPipe) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    ASSERT_EQ(::write(ends[1], std::string(20, 'a').data(), 20), 20);
    ASSERT_EQ(::write(ends[1], std::string(20, 'b').data(), 20), 20);
    close(ends[1]);
    EXPECT_EQ(read_key_descriptor(ends[0], key, problem), Status::ok) << problem;
    EXPECT_EQ(key.bytes().size(), 40u);
    close(ends[0]);
    EXPECT_EQ(read_key_descriptor(ends[0], key, problem), Status::unavailable) << "closed";
}

}  // namespace
}  // namespace offpath::control
