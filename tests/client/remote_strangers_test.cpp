// Remote attach: which clients are accepted, what strangers are told, and that they harm nobody.
#include "link/plugin/plugin_loader.h"
#include "remote_fixture.h"

#include <poll.h>

#include <functional>
#include <thread>

namespace offpath::test {
namespace {

TEST_F(Remote, TellsStrangersNothing) {
    const FileDescriptor stranger = connect_to(daemon.address());
    std::byte bytes[256];
    std::size_t come = 0;
    for (pollfd some{stranger.get(), POLLIN, 0}; come < 33 && poll(&some, 1, 20'000) == 1;) {
        const ssize_t got = recv(stranger.get(), bytes + come, sizeof bytes - come, MSG_DONTWAIT);
        ASSERT_GT(got, 0);
        come += static_cast<std::size_t>(got);
    }
    EXPECT_EQ(come, 33u) << "a challenge";
    EXPECT_EQ(recv(stranger.get(), bytes + come, sizeof bytes - come, MSG_DONTWAIT), -1) << "and no more";
    EXPECT_EQ(bytes[0], std::byte{29});
    // An HTTP client, for example, gets no answer at all.
    (void)send(stranger.get(), "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL);
    MessageSocket socket = MessageSocket::over_tcp(FileDescriptor(dup(stranger.get())));
    EXPECT_TRUE(std::holds_alternative<control::Goodbye>(next(socket))) << "it hangs up";
}

TEST_F(Remote, RefusesWhoDoesNotKnowTheKey) {
    MessageSocket socket = MessageSocket::over_tcp(connect_to(daemon.address()));
    ASSERT_EQ(socket.send(hello_for(next(socket), key_of('x'))), Status::ok);
    EXPECT_EQ(next(socket), Message(control::Refusal{Status::access, "not authenticated"}));
    EXPECT_TRUE(std::holds_alternative<control::Goodbye>(next(socket)));
    EXPECT_NE(daemon.log().find("it does not know the key"), std::string::npos) << daemon.log();

    // A proof that was right in one handshake is wrong in another.
    MessageSocket first = MessageSocket::over_tcp(connect_to(daemon.address()));
    const auto hello = hello_for(next(first), key_of());
    MessageSocket second = MessageSocket::over_tcp(connect_to(daemon.address()));
    (void)next(second);
    ASSERT_EQ(second.send(hello), Status::ok);
    EXPECT_EQ(next(second), Message(control::Refusal{Status::access, "not authenticated"}));
    // The key is right, but the address of the link is invalid. The client is known, and gets no service.
    ASSERT_EQ(first.send(hello), Status::ok);
    const Message answer = next(first);
    const auto* refusal = std::get_if<control::Refusal>(&answer);
    ASSERT_NE(refusal, nullptr);
    EXPECT_NE(refusal->status, Status::access);
}

TEST_F(Remote, TellsOtherVersionsAndMachinesSo) {
    const auto refusal = [&](const std::function<void(std::vector<std::byte>&)>& spoil,
                             bool swapped = false) {
        MessageSocket socket = MessageSocket::over_tcp(connect_to(daemon.address()));
        auto bytes = control::encode_message(hello_for(next(socket), key_of()));
        spoil(bytes);
        write_frame(socket.fd(), bytes, swapped);
        const Message answer = next(socket);
        const auto* no = std::get_if<control::Refusal>(&answer);
        EXPECT_NE(no, nullptr);
        if (no == nullptr) return std::string();
        EXPECT_EQ(no->status, Status::version);
        return no->text;
    };
    EXPECT_NE(refusal([](auto& b) { b[4] = std::byte{99}; }).find("version 99"), std::string::npos);
    EXPECT_NE(refusal([](auto& b) { std::reverse(b.begin() + 8, b.begin() + 12); }).find("byte order"),
              std::string::npos);
    EXPECT_NE(refusal([](auto& b) { b[12] = std::byte{4}; }).find("32 bits"), std::string::npos);
    EXPECT_NE(refusal([](auto&) {}, true).find("byte order"), std::string::npos);
}

// After the handshake, a client that breaks the rules loses its session and is told why.
class RemoteSession : public Remote {
  protected:
    void SetUp() override {
        Remote::SetUp();
        std::string problem;
        ASSERT_EQ(link::load_host_link({}, host, problem), Status::ok) << problem;
        socket = MessageSocket::over_tcp(connect_to(daemon.address()));
        ASSERT_EQ(socket.send(hello_for(next(socket), key_of(), host->address())), Status::ok);
        ASSERT_TRUE(std::holds_alternative<control::RemoteWelcome>(next(socket)));
    }
    void expect_refusal(Status status, const std::string& words) {
        const Message answer = next(socket);
        const auto* refusal = std::get_if<control::Refusal>(&answer);
        ASSERT_NE(refusal, nullptr) << answer.index();
        EXPECT_EQ(refusal->status, status);
        EXPECT_NE(refusal->text.find(words), std::string::npos) << refusal->text;
        EXPECT_TRUE(std::holds_alternative<control::Goodbye>(next(socket))) << "it hangs up";
    }
    std::unique_ptr<link::HostLink> host;
    MessageSocket socket;
};

// A device finds out at its start whether it can import memory. No machine that builds this can.
TEST_F(RemoteSession, HasNoRegionsThatTheDeviceCannotReach) {
    (void)socket.send(control::RegisterRegion{1, 0x1000, 4096});
    EXPECT_EQ(next(socket), Message(control::RegionReply{1, Status::unsupported, 0, 0}));
    if (daemon.log().find("xgvmi unsupported: ") == std::string::npos)
        GTEST_SKIP() << "this device can import";
    (void)socket.send(control::RegisterExported{2, 0x1000, 4096, {std::byte{1}}});
    EXPECT_EQ(std::get<control::RegionReply>(next(socket)).status, Status::unsupported);
    (void)socket.send(control::RevokeRegion{2});
    EXPECT_EQ(std::get<control::RegionReply>(next(socket)).status, Status::invalid);
    (void)socket.send(control::Goodbye{});
    EXPECT_TRUE(std::holds_alternative<control::Goodbye>(next(socket))) << "it hangs up";
    EXPECT_NE(daemon.log().find("detached"), std::string::npos) << daemon.log();
}

TEST_F(RemoteSession, EndsAtASecondHello) {
    (void)socket.send(control::Hello{});
    expect_refusal(Status::protocol, "a second hello");
}

TEST_F(RemoteSession, EndsAtNonsense) {
    write_frame(socket.fd(), std::vector<std::byte>(20, std::byte{0x5a}));
    expect_refusal(Status::protocol, "no offpath message");
}

TEST_F(RemoteSession, EndsAtAFrameThatIsTooLong) {
    (void)send(socket.fd(), "\xff\xff\0\0", 4, MSG_NOSIGNAL);
    expect_refusal(Status::protocol, "a frame of 65535 bytes");
}

// A copy of a job's secret admits clients only while the job runs, and only for a limited time.
TEST_F(Remote, ASecretEndsWithItsJob) {
    const auto now_s = static_cast<std::uint64_t>(time(nullptr));
    const auto answer = [&](std::uint64_t issued) {
        MessageSocket socket = MessageSocket::over_tcp(connect_to(daemon.address()));
        EXPECT_EQ(socket.send(hello_for(next(socket), key_of(), std::vector<std::byte>(10), issued)),
                  Status::ok);
        const Message said = next(socket);
        const auto* refusal = std::get_if<control::Refusal>(&said);
        return refusal != nullptr ? refusal->text : std::string("no refusal");
    };
    EXPECT_NE(answer(now_s - 601).find("good for 600 s"), std::string::npos);
    EXPECT_NE(answer(now_s + 400).find("clocks"), std::string::npos);
    // The client is admitted and then refused, because its link address is invalid.
    EXPECT_EQ(answer(now_s).find("has ended"), std::string::npos);
    std::string last;
    for (const double give_up = now() + 5; last.find("has ended") == std::string::npos && now() < give_up;)
        last = answer(now_s);
    EXPECT_NE(last.find("has ended"), std::string::npos) << last;
}

TEST_F(Remote, StrangersHarmNobody) {
    Job job(2, directory.path(), here(busy_job));
    wait_until_started(job, 20);
    const std::size_t descriptors = daemon.descriptors();
    std::vector<MessageSocket> silent;
    for (int i = 0; i < 100; ++i) {
        MessageSocket socket = MessageSocket::over_tcp(connect_to(daemon.address()));
        switch (i % 8) {
            case 0:  // noise
                write_frame(socket.fd(), std::vector<std::byte>(100, std::byte{0xa5}));
                break;
            case 1:  // a length beyond all
                (void)send(socket.fd(), "\xff\xff\xff\xff", 4, MSG_NOSIGNAL);
                break;
            case 2:  // a message, but not a hello
                (void)socket.send(control::RevokeRegion{1});
                break;
            case 3:  // a local hello
                (void)socket.send(control::Hello{});
                break;
            case 4:  // the wrong key
                (void)socket.send(hello_for(next(socket), key_of('x')));
                break;
            case 5:  // half a frame, and no more
                (void)send(socket.fd(), "\x40\0\0\0OFPM", 8, MSG_NOSIGNAL);
                silent.push_back(std::move(socket));
                continue;
            case 6:  // says nothing and stays
                silent.push_back(std::move(socket));
                continue;
            default:  // away at once
                continue;
        }
        for (Message last = next(socket); !std::holds_alternative<control::Goodbye>(last);
             last = next(socket))
            EXPECT_TRUE(std::holds_alternative<control::Challenge>(last) ||
                        last == Message(control::Refusal{Status::access, "not authenticated"}));
    }
    // There are more strangers than the daemon keeps. The oldest are dropped, and an honest client is still
    // admitted.
    for (int i = 0; i < 300; ++i)
        silent.push_back(MessageSocket::over_tcp(connect_to(daemon.address())));
    EXPECT_TRUE(all_right(2, directory.path(), here([](const Rank& me) {
                              offpath_context_h context = me.init();
                              gather_once(context, me);
                              expect(offpath_finalize(context), OFFPATH_OK, "finalize");
                          })));
    EXPECT_LE(daemon.descriptors(), descriptors + 300);
    ASSERT_TRUE(daemon.running());
    silent.clear();
    static_cast<std::atomic<std::uint32_t>*>(job.shared())[1] = 1;
    EXPECT_EQ(job.wait(), zeros(2));
    const double give_up = now() + 30;
    while (daemon.descriptors() > descriptors && now() < give_up)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_LE(daemon.descriptors(), descriptors) << "descriptors were left open";
    const std::string log = daemon.log();
    EXPECT_LT(std::count(log.begin(), log.end(), '\n'), 100) << "strangers fill the log";
}

// Strangers that stay silent are dropped after 5 s.
TEST_F(Remote, DropsSilentStrangers) {
    const double start = now();
    MessageSocket socket = MessageSocket::over_tcp(connect_to(daemon.address()));
    (void)next(socket);
    EXPECT_TRUE(std::holds_alternative<control::Goodbye>(next(socket)));
    EXPECT_GT(now() - start, 4);
}

}  // namespace
}  // namespace offpath::test
