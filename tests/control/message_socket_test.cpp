// One socket class over both kinds of sockets: whole messages in order, however the stream is cut; bounded
// buffers; keep-alive on a clock of the test.
#include "control/message_socket.h"

#include "control/authentication.h"

#include "samples.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>

namespace offpath::control {
namespace {

constexpr std::uint64_t second = 1'000'000'000;

struct SocketPair {
    explicit SocketPair(bool tcp) {
        int ends[2];
        EXPECT_EQ(socketpair(AF_UNIX, (tcp ? SOCK_STREAM : SOCK_SEQPACKET) | SOCK_CLOEXEC, 0, ends), 0);
        raw = ends[1];
        a = tcp ? MessageSocket::over_tcp(FileDescriptor(ends[0]))
                : MessageSocket::over_unix(FileDescriptor(ends[0]));
        b = tcp ? MessageSocket::over_tcp(FileDescriptor(ends[1]))
                : MessageSocket::over_unix(FileDescriptor(ends[1]));
    }
    MessageSocket a, b;
    int raw = -1;  // b's descriptor
};

Status receive(MessageSocket& socket, Message& message, int timeout_ms = 0) {
    std::vector<FileDescriptor> descriptors;
    std::string problem;
    return socket.receive(timeout_ms, message, descriptors, problem);
}

std::vector<std::byte> frame(const Message& message) {
    const auto bytes = encode_message(message);
    const auto length = static_cast<std::uint32_t>(bytes.size());
    std::vector<std::byte> result(4);
    std::memcpy(result.data(), &length, 4);
    result.insert(result.end(), bytes.begin(), bytes.end());
    return result;
}

void write_raw(int fd, std::span<const std::byte> bytes) {
    ASSERT_EQ(::write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
}

// Both sides of a handshake, after which everything is encrypted.
void encrypt(SocketPair& pair) {
    const Secret secret = draw_secret();
    const Nonce daemon = draw_nonce(), client = draw_nonce();
    using Side = FrameCipher::Side;
    pair.a.encrypt(std::make_unique<FrameCipher>(secret, daemon, client, Side::daemon));
    pair.b.encrypt(std::make_unique<FrameCipher>(secret, daemon, client, Side::client));
}

TEST(EncryptedSockets, CarryEveryMessageBothWays) {
    SocketPair pair(true);
    encrypt(pair);
    for (int round = 0; round < 2; ++round) {
        for (const Message& message : samples::messages()) {
            if (std::holds_alternative<KeepAlive>(message)) continue;
            MessageSocket& from = round == 0 ? pair.a : pair.b;
            MessageSocket& to = round == 0 ? pair.b : pair.a;
            ASSERT_EQ(from.send(message), Status::ok);
            Message got;
            ASSERT_EQ(receive(to, got), Status::ok);
            EXPECT_EQ(got, message);
        }
    }
}

constexpr std::string_view secret_text = "a text that strangers must not read";

TEST(EncryptedSockets, HideWhatTheySay) {
    SocketPair pair(true);
    encrypt(pair);
    ASSERT_EQ(pair.a.send(Refusal{Status::access, std::string(secret_text)}), Status::ok);
    std::array<char, 4096> bytes;
    const ssize_t got = read(pair.raw, bytes.data(), bytes.size());
    ASSERT_GT(got, static_cast<ssize_t>(secret_text.size()));
    const std::string_view seen(bytes.data(), static_cast<std::size_t>(got));
    for (std::size_t at = 0; at + 6 <= secret_text.size(); at += 6)
        EXPECT_EQ(seen.find(secret_text.substr(at, 6)), std::string_view::npos);
}

// A frame with another bit, a frame that comes before its turn, and one that the other direction sent.
TEST(EncryptedSockets, NoticeChanges) {
    using Side = FrameCipher::Side;
    for (int change = 0; change < 3; ++change) {
        SocketPair pair(true);
        const Secret secret = draw_secret();
        pair.b.encrypt(std::make_unique<FrameCipher>(secret, Nonce{}, Nonce{}, Side::client));
        FrameCipher other(secret, Nonce{}, Nonce{}, change == 2 ? Side::client : Side::daemon);
        std::vector<std::byte> first = encode_message(Refusal{Status::access, std::string(secret_text)});
        std::vector<std::byte> next = first;
        other.encrypt(first);
        other.encrypt(next);
        EXPECT_NE(first, next);
        if (change == 0) first[7] ^= std::byte{1};
        const std::vector<std::byte>& said = change == 1 ? next : first;
        const auto length = static_cast<std::uint32_t>(said.size());
        FileDescriptor writer = pair.a.take_descriptor();
        write_raw(writer.get(), std::as_bytes(std::span(&length, 1)));
        write_raw(writer.get(), said);
        Received received;
        EXPECT_EQ(pair.b.receive_bytes(received), Status::protocol);
        EXPECT_EQ(received.problem, "a message was changed on its way");
    }
}

class Sockets : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(UnixAndTcp, Sockets, testing::Bool());

TEST_P(Sockets, CarryEveryMessageInOrder) {
    SocketPair pair(GetParam());
    for (const Message& message : samples::messages()) {
        if (GetParam() && std::holds_alternative<KeepAlive>(message)) continue;
        ASSERT_EQ(pair.a.send(message), Status::ok);
    }
    for (const Message& message : samples::messages()) {
        if (GetParam() && std::holds_alternative<KeepAlive>(message)) continue;
        Message got;
        ASSERT_EQ(receive(pair.b, got), Status::ok);
        EXPECT_EQ(got, message);
    }
    Received received;
    EXPECT_EQ(pair.b.receive_bytes(received), Status::retry);
}

TEST_P(Sockets, HearThatTheOtherSideIsGone) {
    SocketPair pair(GetParam());
    ASSERT_EQ(pair.a.send(Refusal{Status::version, "no"}), Status::ok);
    EXPECT_FALSE(pair.b.peer_closed());
    pair.a.close();
    EXPECT_TRUE(pair.b.peer_closed());
    Message last;
    EXPECT_EQ(receive(pair.b, last), Status::ok) << "what was said before is still heard";
    EXPECT_EQ(receive(pair.b, last), Status::peer_lost);
    EXPECT_EQ(pair.b.send(Goodbye{}), Status::peer_lost);
}

TEST_P(Sockets, WaitOnlyAsLongAsTold) {
    SocketPair pair(GetParam());
    Message message;
    EXPECT_EQ(receive(pair.b, message, 20), Status::unavailable);
    std::jthread late([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        (void)pair.a.send(RevokeRegion{7});
    });
    EXPECT_EQ(receive(pair.b, message, 5000), Status::ok);
    EXPECT_EQ(message, Message(RevokeRegion{7}));
}

TEST(UnixSockets, CarryDescriptors) {
    SocketPair pair(false);
    const FileDescriptor file(dup(0));
    const int fd = file.get();
    ASSERT_EQ(pair.a.send(Goodbye{}, std::span(&fd, 1)), Status::ok);
    Message message;
    std::vector<FileDescriptor> descriptors;
    std::string problem;
    ASSERT_EQ(pair.b.receive(0, message, descriptors, problem), Status::ok) << problem;
    EXPECT_EQ(descriptors.size(), 1u);
    EXPECT_EQ(SocketPair(true).a.send(Goodbye{}, std::span(&fd, 1)), Status::unsupported);
}

TEST(TcpSockets, PutMessagesTogetherFromSingleBytes) {
    SocketPair pair(true);
    for (const Message& message : samples::messages()) {
        if (std::holds_alternative<KeepAlive>(message)) continue;
        const auto bytes = frame(message);
        Received received;
        for (std::size_t i = 0; i + 1 < bytes.size(); ++i) {
            write_raw(pair.raw, std::span(bytes).subspan(i, 1));
            ASSERT_EQ(pair.a.receive_bytes(received), Status::retry);
        }
        write_raw(pair.raw, std::span(bytes).last(1));
        ASSERT_EQ(pair.a.receive_bytes(received), Status::ok);
        EXPECT_EQ(received.bytes, encode_message(message));
    }
}

// The other side does not read. Messages are kept up to a limit and then refused. None is lost or cut.
TEST(TcpSockets, KeepWhatTheOtherSideDoesNotTakeWithinALimit) {
    SocketPair pair(true);
    RegisterExported large{1, 0x1000, 4096, std::vector<std::byte>(max_blob_bytes, std::byte{9})};
    std::uint64_t sent = 0;
    while (sent < 10000) {
        large.id = sent + 1;
        const Status status = pair.a.send(large);
        if (status == Status::retry) break;
        ASSERT_EQ(status, Status::ok);
        ++sent;
    }
    ASSERT_LT(sent, 10000u) << "the buffer has no limit";
    EXPECT_TRUE(pair.a.unsent());
    for (std::uint64_t i = 0; i < sent; ++i) {
        Message message;
        ASSERT_TRUE(pair.a.flush() == Status::ok || pair.a.unsent());
        ASSERT_EQ(receive(pair.b, message), Status::ok);
        ASSERT_EQ(std::get<RegisterExported>(message).id, i + 1);
    }
    EXPECT_FALSE(pair.a.unsent());
    EXPECT_EQ(pair.a.send(large), Status::ok);
}

TEST(TcpSockets, RefuseFramesThatAreNoMessages) {
    const auto answer = [](std::uint32_t length, std::string& problem) {
        SocketPair pair(true);
        write_raw(pair.raw, std::as_bytes(std::span(&length, 1)));
        Received received;
        const Status status = pair.a.receive_bytes(received);
        problem = received.problem;
        return status;
    };
    std::string problem;
    EXPECT_EQ(answer(0, problem), Status::protocol);
    EXPECT_EQ(answer(7, problem), Status::protocol);
    EXPECT_EQ(answer(max_message_bytes + 1, problem), Status::protocol);
    EXPECT_EQ(answer(0x20544547, problem), Status::protocol) << "\"GET \"";
    EXPECT_NE(problem.find("no offpath message"), std::string::npos) << problem;
    EXPECT_EQ(answer(8, problem), Status::retry);
    EXPECT_EQ(answer(max_message_bytes, problem), Status::retry);
    // A machine of the other byte order sends in its own order.
    EXPECT_EQ(answer(__builtin_bswap32(29), problem), Status::version);
    EXPECT_NE(problem.find("byte order"), std::string::npos) << problem;
}

TEST(KeepAlives, AreSentEveryTwoSecondsAndNotHandedOut) {
    SocketPair pair(true);
    std::uint64_t now = 100 * second;
    std::size_t frames = 0;
    for (int i = 0; i < 40; ++i, now += second / 2) {
        ASSERT_EQ(pair.a.tend(now), Status::ok) << "only a says something: for a the other side is silent";
        std::byte bytes[64];
        const ssize_t got = recv(pair.raw, bytes, sizeof bytes, MSG_DONTWAIT | MSG_PEEK);
        if (got > 0) {
            EXPECT_EQ(got, 12);
            ++frames;
            Received received;
            EXPECT_EQ(pair.b.receive_bytes(received), Status::retry);
        }
        if (i == 15) break;
    }
    EXPECT_EQ(frames, 4u);
}

TEST(KeepAlives, TellThatTheOtherSideIsSilent) {
    SocketPair pair(true);
    std::uint64_t now = second;
    ASSERT_EQ(pair.a.tend(now), Status::ok);
    ASSERT_EQ(pair.a.tend(now + 8 * second), Status::ok);
    Received received;
    for (int i = 0; i < 10; ++i) {
        now += 7 * second;
        ASSERT_EQ(pair.b.tend(now - second), Status::ok);
        EXPECT_EQ(pair.a.receive_bytes(received), Status::retry);
        (void)pair.b.receive_bytes(received);
        ASSERT_EQ(pair.a.tend(now), Status::ok) << "it was heard";
    }
    EXPECT_EQ(pair.a.tend(now + 8 * second + 1), Status::peer_lost);
}

TEST(KeepAlives, AreNotForUnixSockets) {
    SocketPair pair(false);
    for (std::uint64_t now : {second, 100 * second, 1000 * second})
        EXPECT_EQ(pair.a.tend(now), Status::ok);
    Received received;
    EXPECT_EQ(pair.b.receive_bytes(received), Status::retry);
}

}  // namespace
}  // namespace offpath::control
