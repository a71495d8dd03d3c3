// Addresses as people write them, and connections that succeed or are refused in time.
#include "control/tcp_socket.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

namespace offpath::control {
namespace {

TEST(TcpAddresses, AreReadAndWritten) {
    const auto parsed = [](const std::string& text) {
        TcpAddress address;
        std::string problem;
        EXPECT_EQ(parse_tcp_address(text, address, problem), Status::ok) << problem;
        return address;
    };
    EXPECT_EQ(parsed("10.0.0.2"), (TcpAddress{"10.0.0.2", 7471}));
    EXPECT_EQ(parsed("10.0.0.2:0"), (TcpAddress{"10.0.0.2", 0}));
    EXPECT_EQ(parsed("node7-dpu:65535"), (TcpAddress{"node7-dpu", 65535}));
    EXPECT_EQ(parsed("[fd00::2]"), (TcpAddress{"fd00::2", 7471}));
    EXPECT_EQ(parsed("[fd00::2]:99"), (TcpAddress{"fd00::2", 99}));
    for (const char* text : {"10.0.0.2:7471", "node7-dpu:65535", "[fd00::2]:99"})
        EXPECT_EQ(to_string(parsed(text)), text);
}

TEST(TcpAddresses, ThatAreNoneAreRefused) {
    for (const char* text :
         {"", ":", ":7471", "host:", "host:x", "host:-1", "host:65536", "host:1:2", "fd00::2", "[fd00::2",
          "[]:1", "[fd00::2]1", "two words", "a=b", "a,b", "host:1 "}) {
        TcpAddress address;
        std::string problem;
        EXPECT_EQ(parse_tcp_address(text, address, problem), Status::invalid) << text;
        EXPECT_NE(problem.find("is accepted"), std::string::npos) << problem;
    }
}

TEST(TcpConnections, AreMadeToWhereSomebodyListens) {
    FileDescriptor listener, client;
    std::uint16_t port = 0;
    std::string problem;
    ASSERT_EQ(listen_tcp({"127.0.0.1", 0}, listener, port, problem), Status::ok) << problem;
    ASSERT_NE(port, 0);
    ASSERT_EQ(connect_tcp({"127.0.0.1", port}, 1000, client, problem), Status::ok) << problem;
    const FileDescriptor server(accept(listener.get(), nullptr, nullptr));
    EXPECT_TRUE(server);
    EXPECT_EQ(tcp_peer_name(client.get()), "127.0.0.1:" + std::to_string(port));

    FileDescriptor second;
    std::uint16_t other = 0;
    EXPECT_EQ(listen_tcp({"127.0.0.1", port}, second, other, problem), Status::system);
    EXPECT_NE(problem.find("Address already in use"), std::string::npos) << problem;
    EXPECT_EQ(listen_tcp({"192.0.2.1", 0}, second, other, problem), Status::system)
        << "not an address of ours";
}

TEST(TcpConnections, SayWhyTheyCannotBeMade) {
    FileDescriptor listener, client;
    std::uint16_t port = 0;
    std::string problem;
    ASSERT_EQ(listen_tcp({"127.0.0.1", 0}, listener, port, problem), Status::ok) << problem;
    listener.reset();
    EXPECT_EQ(connect_tcp({"127.0.0.1", port}, 1000, client, problem), Status::unavailable);
    EXPECT_NE(problem.find("127.0.0.1:" + std::to_string(port) + " (Connection refused)"), std::string::npos)
        << problem;
    EXPECT_EQ(connect_tcp({"nonexistent.invalid", 1}, 1000, client, problem), Status::unavailable);
    EXPECT_NE(problem.find("nonexistent.invalid"), std::string::npos) << problem;
}

// The name server of this private namespace takes requests and never answers.
int ask_a_silent_name_service() {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET) != 0) return 77;
    const int up = socket(AF_INET, SOCK_DGRAM, 0);
    ifreq lo{};
    std::strcpy(lo.ifr_name, "lo");
    lo.ifr_flags = IFF_UP;
    char configuration[] = "/tmp/offpath-resolv-XXXXXX";
    const int file = mkstemp(configuration);
    const std::string text = "nameserver 127.0.0.1\noptions timeout:30 attempts:2\n";
    const bool fine = ioctl(up, SIOCSIFFLAGS, &lo) == 0 &&
                      write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                      mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                      mount(configuration, "/etc/resolv.conf", nullptr, MS_BIND, nullptr) == 0;
    unlink(configuration);
    if (!fine) return 77;
    sockaddr_in name_service{};
    name_service.sin_family = AF_INET;
    name_service.sin_port = htons(53);
    name_service.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int server = socket(AF_INET, SOCK_DGRAM, 0);
    if (bind(server, reinterpret_cast<sockaddr*>(&name_service), sizeof name_service) != 0) return 1;
    FileDescriptor client;
    std::string problem;
    const auto start = std::chrono::steady_clock::now();
    const Status status = connect_tcp({"device.example.net", 1}, 500, client, problem);
    const auto took = std::chrono::steady_clock::now() - start;
    char question[512];
    if (recv(server, question, sizeof question, MSG_DONTWAIT) <= 0) return 77;  // it was never asked
    if (status != Status::unavailable || problem.find("does not answer") == std::string::npos) return 2;
    return took < std::chrono::seconds(20) ? 0 : 3;  // the name service is given up after 30 s
}

TEST(TcpConnections, DoNotWaitForANameService) {
    const pid_t child = fork();
    if (child == 0) _exit(ask_a_silent_name_service());
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no namespaces here, or names are asked for elsewhere";
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

// A listener with a full queue does not answer at all, like a host that does not exist.
TEST(TcpConnections, AreGivenUpInTime) {
    FileDescriptor listener;
    std::uint16_t port = 0;
    std::string problem;
    ASSERT_EQ(listen_tcp({"127.0.0.1", 0}, listener, port, problem), Status::ok) << problem;
    ASSERT_EQ(listen(listener.get(), 0), 0);
    FileDescriptor fill[8];
    const auto start = std::chrono::steady_clock::now();
    Status last = Status::ok;
    for (FileDescriptor& client : fill)
        if (last == Status::ok) last = connect_tcp({"127.0.0.1", port}, 200, client, problem);
    EXPECT_EQ(last, Status::unavailable);
    EXPECT_NE(problem.find("timed out"), std::string::npos) << problem;
    // The kernel gives a connection up after two minutes.
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

}  // namespace
}  // namespace offpath::control
