// Faults: no daemon, another version, malformed clients, processes killed in the middle. Every case ends in
// bounded time, names the cause, and does not disturb other processes.
#include "control/shared_channel.h"
#include "control/socket.h"
#include "harness.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

namespace offpath::test {
namespace {

using control::Message;

FileDescriptor connect(const TemporaryDirectory& directory) {
    FileDescriptor socket;
    std::string problem;
    EXPECT_EQ(control::connect_to(control::socket_path(directory.path()), socket, problem), Status::ok)
        << problem;
    return socket;
}

void send_raw(int socket, const std::vector<std::byte>& bytes) {
    (void)send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

// Returns the daemon's answer. A Goodbye means that it closed the connection.
Message answer(int socket) {
    Message message = control::Goodbye{};
    std::vector<FileDescriptor> descriptors;
    std::string problem;
    (void)control::receive_message(socket, 8000, message, descriptors, problem);
    return message;
}

Status refusal(int socket, std::string* text = nullptr) {
    const Message message = answer(socket);
    const auto* no = std::get_if<control::Refusal>(&message);
    if (no == nullptr) return Status::ok;
    if (text != nullptr) *text = no->text;
    return no->status;
}

TEST(Faults, NoDaemonFailsInitOnAllRanks) {
    TemporaryDirectory directory;
    EXPECT_TRUE(all_right(3, directory.path(), [](const Rank& me) {
        offpath_context_h context = nullptr;
        expect(me.try_init(&context), OFFPATH_ERR_UNAVAILABLE, "init without a daemon");
        require(context == nullptr, "the output is set on success only");
    }));
}

TEST(Faults, OneRankWithoutADaemonFailsAll) {
    TemporaryDirectory directory, empty;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    EXPECT_TRUE(all_right(3, directory.path(), [&](const Rank& me) {
        Rank mine = me;
        if (me.rank == 2) mine.directory = empty.path();
        offpath_context_h context = nullptr;
        expect(mine.try_init(&context), OFFPATH_ERR_UNAVAILABLE, "init");
        // A second attempt has the mistake corrected.
        context = me.init();
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

TEST(Faults, WrongParametersFailInit) {
    offpath_init_params_t params{};
    offpath_context_h context = nullptr;
    EXPECT_EQ(offpath_init(nullptr, &context), OFFPATH_ERR_INVALID);
    EXPECT_EQ(offpath_init(&params, &context), OFFPATH_ERR_INVALID);
    params.struct_size = sizeof params;
    params.allgather = [](void*, const void*, size_t, void*) { return 1; };
    EXPECT_EQ(offpath_init(&params, &context), OFFPATH_ERR_INVALID) << "no ranks";
    params.size = 1;
    EXPECT_EQ(offpath_init(&params, &context), OFFPATH_ERR_UNAVAILABLE) << "the allgather fails";
    EXPECT_EQ(context, nullptr);
}

TEST(Faults, AnotherVersionIsRefusedByTheDaemon) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    FileDescriptor socket = connect(directory);
    auto hello = control::encode_message(control::Hello{});
    hello[4] = std::byte{99};
    send_raw(socket.get(), hello);
    std::string text;
    EXPECT_EQ(refusal(socket.get(), &text), Status::version);
    EXPECT_NE(text.find("99"), std::string::npos) << text;
}

TEST(Faults, AnotherVersionIsRefusedByTheClient) {
    TemporaryDirectory directory;
    FileDescriptor listener;
    std::string problem;
    ASSERT_EQ(control::listen_at(control::socket_path(directory.path()), listener, problem), Status::ok)
        << problem;
    Job job(1, directory.path(), [](const Rank& me) {
        offpath_context_h context = nullptr;
        expect(me.try_init(&context), OFFPATH_ERR_VERSION, "init with a daemon of another version");
    });
    const double give_up = now() + 10;
    int client = -1;
    while (client < 0 && now() < give_up)
        client = accept(listener.get(), nullptr, nullptr);
    FileDescriptor socket(client);
    (void)answer(socket.get());
    auto welcome = control::encode_message(control::Refusal{Status::unavailable, "hm"});
    welcome[4] = std::byte{99};
    send_raw(socket.get(), welcome);
    EXPECT_EQ(job.wait(), zeros(1));
}

TEST(Faults, MalformedClientsHarmNobody) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    Job job(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        auto* shared = static_cast<std::atomic<std::uint32_t>*>(me.shared);
        std::uint32_t go_on[2] = {1, 1};
        for (std::uint32_t i = 0; go_on[0] != 0; ++i) {
            const std::uint32_t wish = shared[1].load() == 0;
            std::vector<std::uint32_t> out(2 * 5000, i), in(2 * 5000);
            offpath_request_h a = nullptr, b = nullptr;
            expect(offpath_ialltoall(world, out.data(), in.data(), 20000, &a), OFFPATH_OK, "ialltoall");
            go_on[0] = wish;
            expect(offpath_ibcast(world, go_on, 4, 0, &b), OFFPATH_OK, "ibcast");
            expect(offpath_request_wait(a), OFFPATH_OK, "wait");
            expect(offpath_request_wait(b), OFFPATH_OK, "wait");
            require(in[0] == i && in[9999] == i, "data");
            offpath_request_free(a);
            offpath_request_free(b);
            shared->fetch_add(1);
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    });
    wait_until_started(job);
    const std::size_t descriptors = daemon.descriptors();

    std::vector<FileDescriptor> held;
    for (int i = 0; i < 100; ++i) {
        FileDescriptor socket = connect(directory);
        switch (i % 7) {
            case 0:  // noise
                send_raw(socket.get(),
                         std::vector<std::byte>(static_cast<std::size_t>(i) + 1, std::byte{0xa5}));
                EXPECT_EQ(refusal(socket.get()), Status::protocol);
                break;
            case 1:  // oversized
                send_raw(socket.get(), std::vector<std::byte>(control::max_message_bytes + 100));
                EXPECT_EQ(refusal(socket.get()), Status::protocol);
                break;
            case 2:  // not a hello
                send_raw(socket.get(), control::encode_message(control::RevokeRegion{1}));
                EXPECT_EQ(refusal(socket.get()), Status::protocol);
                break;
            case 3:  // nothing at all, and away
                break;
            case 4: {  // a good hello, then noise on the socket
                ASSERT_EQ(control::send_message(socket.get(), control::Hello{}), Status::ok);
                ASSERT_TRUE(std::holds_alternative<control::Welcome>(answer(socket.get())));
                send_raw(socket.get(), std::vector<std::byte>(64, std::byte{1}));
                EXPECT_EQ(refusal(socket.get()), Status::protocol);
                break;
            }
            case 5: {  // a good hello, then a region without a file
                ASSERT_EQ(control::send_message(socket.get(), control::Hello{}), Status::ok);
                ASSERT_TRUE(std::holds_alternative<control::Welcome>(answer(socket.get())));
                ASSERT_EQ(control::send_message(socket.get(), control::RegisterRegion{1, 0x1000, 4096}),
                          Status::ok);
                EXPECT_EQ(refusal(socket.get()), Status::protocol);
                break;
            }
            case 6:  // says nothing and stays
                held.push_back(std::move(socket));
                break;
        }
    }
    ASSERT_TRUE(daemon.running());
    held.clear();
    static_cast<std::atomic<std::uint32_t>*>(job.shared())[1] = 1;
    EXPECT_EQ(job.wait(), zeros(2));
    const double give_up = now() + 30;
    while (daemon.descriptors() > descriptors && now() < give_up)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_LE(daemon.descriptors(), descriptors) << "descriptors were left open";
}

// The ring holds nonsense. The session ends with a reason for its client, and nothing else suffers.
// Even where the modes of directory and socket would let the other user in.
TEST(Faults, AnotherUserIsRefused) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, to be another user than the daemon";
    constexpr uid_t nobody = 65534;
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    ASSERT_EQ(chmod(directory.path().c_str(), 0755), 0);
    ASSERT_EQ(chmod(control::socket_path(directory.path()).c_str(), 0666), 0);
    const pid_t stranger = fork();
    if (stranger == 0) {
        if (setgid(nobody) != 0 || setuid(nobody) != 0) _exit(126);
        const FileDescriptor socket = connect(directory);
        std::string text;  // comes before the hello
        const bool refused = refusal(socket.get(), &text) == Status::access;
        _exit(refused && text.find("not 65534") != std::string::npos ? 0 : 1);
    }
    int code = -1;
    ASSERT_EQ(waitpid(stranger, &code, 0), stranger);
    EXPECT_TRUE(WIFEXITED(code) && WEXITSTATUS(code) == 0) << code;
}

TEST(Faults, RefusalsDoNotFillTheLog) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    for (int i = 0; i < 500; ++i) {
        const FileDescriptor socket = connect(directory);
        send_raw(socket.get(), std::vector<std::byte>(100, std::byte{0xa5}));
        (void)answer(socket.get());
    }
    const std::string log = daemon.log();
    EXPECT_NE(log.find("was refused"), std::string::npos);
    EXPECT_LT(std::count(log.begin(), log.end(), '\n'), 60);
}

TEST(Faults, MalformedCommandsEndTheirSession) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    using Deed = std::function<void(control::ClientChannel&)>;
    const std::uint32_t ranks[] = {0};
    const std::vector<std::pair<const char*, Deed>> deeds{
        {"a start of an unknown schedule",
         [&](control::ClientChannel& channel) {
             (void)channel.post(control::CreateTeam{1, 0, 1, 0, pack(std::span<const std::uint32_t>(ranks))});
             (void)channel.post(control::Start{9, 1, 0, 0, 0, 0, {}});
         }},
        {"a send on an unknown team",
         [](control::ClientChannel& channel) {
             (void)channel.post(control::BasicSend{1, 0, 0, 0, {}});
         }},
        {"a completion beyond the table",
         [&](control::ClientChannel& channel) {
             (void)channel.post(control::CreateTeam{1, 0, 1, 0, pack(std::span<const std::uint32_t>(ranks))});
             (void)channel.post(control::BasicSend{1, 0, 0, 1u << 30, {}});
         }},
        {"a team twice",
         [&](control::ClientChannel& channel) {
             for (int i = 0; i < 2; ++i)
                 (void)channel.post(
                     control::CreateTeam{1, 0, 1, 0, pack(std::span<const std::uint32_t>(ranks))});
         }},
        {"parts of a schedule out of order",
         [](control::ClientChannel& channel) {
             const std::vector<std::byte> bytes(10);
             (void)channel.post(control::SchedulePart{1, 100, 50, bytes});
         }},
        {"a team larger than its job",
         [&](control::ClientChannel& channel) {
             (void)channel.post(
                 control::CreateTeam{1, 0, 1u << 20, 0, pack(std::span<const std::uint32_t>(ranks))});
         }},
        {"parts of a schedule that grows",
         [](control::ClientChannel& channel) {
             const std::vector<std::byte> bytes(10);
             (void)channel.post(control::SchedulePart{1, 20, 0, bytes});
             (void)channel.post(control::SchedulePart{1, 2000, 10, bytes});
         }},
        {"a rank beyond the job",
         [](control::ClientChannel& channel) {
             const std::uint64_t proxies[] = {1, 2, 3};
             (void)channel.post(control::Ranks{0, pack(std::span<const std::uint64_t>(proxies))});
         }},
    };
    for (const auto& [what, deed] : deeds) {
        FileDescriptor socket = connect(directory);
        ASSERT_EQ(control::send_message(socket.get(), control::Hello{}), Status::ok);
        Message message;
        std::vector<FileDescriptor> descriptors;
        std::string problem;
        ASSERT_EQ(control::receive_message(socket.get(), 5000, message, descriptors, problem), Status::ok);
        ASSERT_GE(descriptors.size(), 2u);
        control::ChannelMemory memory;
        ASSERT_EQ(control::ChannelMemory::map(descriptors[0].get(), memory), Status::ok);
        control::SharedClientChannel channel(std::move(memory), std::move(descriptors[1]));
        deed(channel);
        channel.ring();
        std::string text;
        EXPECT_EQ(refusal(socket.get(), &text), Status::protocol) << what;
        EXPECT_FALSE(text.empty()) << what;
    }
    EXPECT_TRUE(daemon.running());
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        expect(offpath_finalize(me.init()), OFFPATH_OK, "a job afterwards");
    }));
}

class Killed : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(ByTestOrWait, Killed, testing::Bool());

TEST_P(Killed, DaemonEndsOperationsWithPeerLost) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    Job job(3, directory.path(), [&](const Rank& me) { endless_job(me, OFFPATH_ERR_PEER_LOST, GetParam()); });
    wait_until_started(job);
    daemon.signal(SIGKILL);
    EXPECT_EQ(job.wait(60), zeros(3));
}

// There are two nodes, and the daemon of one dies. Its own ranks lose their proxy, the others lose their
// peers.
TEST_P(Killed, DaemonOfOneNodeEndsTheOperationsOfAll) {
    if (geteuid() != 0) GTEST_SKIP() << "host names need root";
    TemporaryDirectory directory;
    DaemonProcess one(directory.path(), {}, "node-one"), two(directory.path(), {}, "node-two");
    ASSERT_TRUE(one.ready()) << one.log();
    ASSERT_TRUE(two.ready()) << two.log();
    Job job(4, directory.path(), [&](const Rank& me) {
        require(become_host(me.rank % 2 == 0 ? "node-one" : "node-two"), "host name");
        endless_job(me, OFFPATH_ERR_PEER_LOST, GetParam());
    });
    wait_until_started(job);
    two.signal(SIGKILL);
    // Over shared memory, a process counts as alive until its parent has collected its exit code.
    EXPECT_EQ(two.wait(), -1);
    EXPECT_EQ(job.wait(60), zeros(4));
    EXPECT_TRUE(one.running());
}

TEST_P(Killed, RankEndsItsPeersOperationsAndNobodyElses) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path(), {"--proxies", GetParam() ? "2" : "1"});
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    Job bystanders(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_team_h world = me.world(context);
        for (std::uint32_t i = 0; i < 3000; ++i) {
            std::uint32_t all[2] = {};
            const std::uint32_t mine = me.rank + i;
            offpath_request_h request = nullptr;
            expect(offpath_iallgather(world, &mine, all, 4, &request), OFFPATH_OK, "iallgather");
            expect(offpath_request_wait(request), OFFPATH_OK, "wait");
            require(all[0] == i && all[1] == i + 1, "data");
            offpath_request_free(request);
        }
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    });
    Job job(3, directory.path(), [&](const Rank& me) { endless_job(me, OFFPATH_ERR_PEER_LOST, GetParam()); });
    wait_until_started(job);
    kill(job.pid(1), SIGKILL);
    EXPECT_EQ(job.wait(60), (std::vector<int>{0, -1, 0}));
    EXPECT_EQ(bystanders.wait(), zeros(2));
    EXPECT_TRUE(daemon.running());
    EXPECT_NE(daemon.log().find(remote_mode() ? "the session of rank 1 of job" : "its process is gone"),
              std::string::npos);
}

TEST(Faults, RankThatLeavesEarlyEndsItsPeersOperations) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    Job job(2, directory.path(), [&](const Rank& me) {
        if (me.rank == 0) {
            me.init();
            me.barrier();
            _exit(0);
        }
        offpath_context_h context = me.init();
        me.barrier();
        std::vector<char> in(1000), out(1000);
        offpath_request_h request = nullptr;
        expect(offpath_ialltoall(me.world(context), out.data(), in.data(), 500, &request), OFFPATH_OK,
               "start");
        require(offpath_request_wait(request) < 0, "the operation fails");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    });
    EXPECT_EQ(job.wait(60), zeros(2));
}

}  // namespace
}  // namespace offpath::test
