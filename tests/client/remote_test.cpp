// Remote attach, always over TCP: which clients are accepted, what strangers are told, what clients report
// about a wrong device, and what happens when one side falls silent.
#include "control/authentication.h"
#include "control/message_socket.h"
#include "control/tcp_socket.h"
#include "harness.h"
#include "kernel_calls.h"
#include "link/plugin/plugin_loader.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

namespace offpath::test {
namespace {

using control::Message;
using control::MessageSocket;

std::vector<int> zeros(std::size_t count) {
    return std::vector<int>(count, 0);
}

std::string write_key(const std::string& path, char fill = 'k', mode_t mode = 0600) {
    std::ofstream(path, std::ios::trunc) << std::string(32, fill);
    chmod(path.c_str(), mode);
    return path;
}

control::Key key_of(char fill = 'k') {
    return control::Key(std::vector<std::byte>(32, static_cast<std::byte>(fill)));
}

FileDescriptor connect_to(const std::string& where) {
    control::TcpAddress address;
    FileDescriptor socket;
    std::string problem;
    EXPECT_EQ(control::parse_tcp_address(where, address, problem), Status::ok) << problem;
    EXPECT_EQ(control::connect_tcp(address, 2000, socket, problem), Status::ok) << problem;
    return socket;
}

Message next(MessageSocket& socket) {
    Message message = control::Goodbye{};  // stands for "it hung up"
    std::vector<FileDescriptor> descriptors;
    std::string problem;
    (void)socket.receive(8000, message, descriptors, problem);
    return message;
}

void write_frame(int fd, const std::vector<std::byte>& bytes, bool swapped = false) {
    auto length = static_cast<std::uint32_t>(bytes.size());
    if (swapped) length = __builtin_bswap32(length);
    (void)send(fd, &length, sizeof length, MSG_NOSIGNAL);
    (void)send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

control::RemoteHello hello_for(const Message& challenge, const control::Key& key,
                               std::vector<std::byte> link = std::vector<std::byte>(10),
                               std::uint64_t issued = static_cast<std::uint64_t>(time(nullptr))) {
    control::RemoteHello hello;
    hello.hello.job_high = 7;
    hello.issued = issued;
    hello.nonce = control::draw_nonce();
    hello.link = std::move(link);
    const auto* c = std::get_if<control::Challenge>(&challenge);
    EXPECT_NE(c, nullptr);
    if (c != nullptr)
        hello.mac =
            control::handshake_mac(control::job_secret(key, 7, 0, issued), c->nonce, hello.nonce, hello);
    return hello;
}

// A daemon that listens, with its own key.
class Remote : public testing::Test {
  protected:
    void SetUp() override { ASSERT_TRUE(daemon.ready()) << daemon.log(); }
    void attach_to(const std::string& where, const std::string& key_file) const {
        setenv("OFFPATH_DEVICES", where.c_str(), 1);
        setenv("OFFPATH_KEY_FILE", key_file.c_str(), 1);
    }
    // Makes a body whose ranks attach to this daemon.
    Job::Body here(const Job::Body& body) const {
        return [this, body](const Rank& me) {
            attach_to(daemon.address(), key);
            body(me);
        };
    }
    TemporaryDirectory directory;
    const std::string key = write_key(directory.path() + "/key");
    DaemonProcess daemon{directory.path(), {"--listen", "127.0.0.1:0", "--key-file", key}};
};

// Called in a rank whose init fails. Returns the text of the error.
std::string failing_init(const Rank& me, offpath_status_t wanted) {
    const std::string path = me.directory + "/said";
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600), err = dup(2);
    dup2(file, 2);
    offpath_context_h context = nullptr;
    const double start = now();
    const offpath_status_t status = me.try_init(&context);
    const double took = now() - start;
    dup2(err, 2);
    expect(status, wanted, "init");
    require(took < 10, "it took " + std::to_string(took) + " s to say so");
    std::ifstream said(path);
    return std::string(std::istreambuf_iterator<char>(said), {});
}

void require_words(const std::string& text, std::initializer_list<std::string> words) {
    for (const std::string& word : words)
        require(text.find(word) != std::string::npos, "'" + word + "' is missing in: " + text);
}

void gather_once(offpath_context_h context, const Rank& me) {
    std::vector<std::uint32_t> all(me.size);
    offpath_request_h request = nullptr;
    expect(offpath_iallgather(me.world(context), &me.rank, all.data(), 4, &request), OFFPATH_OK, "start");
    expect(offpath_request_wait(request), OFFPATH_OK, "wait");
    for (std::uint32_t i = 0; i < me.size; ++i)
        require(all[i] == i, "data");
    offpath_request_free(request);
}

TEST_F(Remote, SaysHowMemoryIsReached) {
    EXPECT_TRUE(all_right(
        2, directory.path(), here([](const Rank& me) {
            offpath_context_h context = me.init();
            gather_once(context, me);
            offpath_context_info_t info{};
            info.struct_size = sizeof info;
            expect(offpath_context_query(context, &info), OFFPATH_OK, "query");
            require(info.default_back_end == OFFPATH_BACK_END_STAGED &&
                        info.default_progress == OFFPATH_PROGRESS_AGENT,
                    "staged, by the agent");
            void* memory = nullptr;
            expect(offpath_mem_alloc(context, 10000, &memory), OFFPATH_OK, "alloc");
            offpath_back_end_t back_end;
            offpath_progress_t progress;
            expect(offpath_mem_query(context, memory, 10000, &back_end, &progress), OFFPATH_OK, "query");
            require(back_end == OFFPATH_BACK_END_STAGED && progress == OFFPATH_PROGRESS_AGENT,
                    "what is allocated is not mapped by a device of its own");
            expect(offpath_mem_free(context, memory), OFFPATH_OK, "free");
            expect(offpath_mem_free(context, memory), OFFPATH_ERR_INVALID, "twice");
            expect(offpath_finalize(context), OFFPATH_OK, "finalize");
        })));
}

// The key can be read on one rank only.
TEST_F(Remote, GivesTheSecretToAllRanks) {
    EXPECT_TRUE(all_right(3, directory.path(), [this](const Rank& me) {
        attach_to(daemon.address(), me.rank == 1 ? key : "/nonexistent/key");
        offpath_context_h context = me.init();
        gather_once(context, me);
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

TEST_F(Remote, ServesBesideLocalAttach) {
    EXPECT_TRUE(all_right(4, directory.path(), [this](const Rank& me) {
        if (me.rank % 2 == 0) attach_to(daemon.address(), key);
        offpath_context_h context = me.init();
        gather_once(context, me);
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

TEST(RemoteDaemon, NeedsAGoodKey) {
    TemporaryDirectory directory;
    const std::string key = write_key(directory.path() + "/key"),
                      open_key = write_key(directory.path() + "/open", 'k', 0644);
    const auto refused = [&](std::vector<std::string> options, const std::string& words) {
        DaemonProcess daemon(directory.path(), std::move(options));
        EXPECT_FALSE(daemon.ready());
        EXPECT_NE(daemon.wait(), 0);
        EXPECT_NE(daemon.log().find(words), std::string::npos) << daemon.log();
    };
    refused({"--listen", "127.0.0.1:0"}, "--listen needs --key-file or --key-fd");
    refused({"--listen", "127.0.0.1:0", "--key-file", open_key}, "chmod 600");
    refused({"--listen", "127.0.0.1:0", "--key-file", "/nonexistent"}, "No such file");
    refused({"--listen", "127.0.0.1:0", "--key-file", "/dev/null"}, "not a regular file");
    refused({"--listen", "127.0.0.1:0", "--key-fd", "987"}, "descriptor 987");
    refused({"--listen", "127.0.0.1:0", "--key-file", key, "--host-devices", "nope0"},
            "UCX_NET_DEVICES=nope0");
    refused({"--listen", "127.0.0.1:99999", "--key-file", key}, "is no address");
    refused({"--listen", "127.0.0.1:0", "--key-file", key, "--allow-kernels", "/"}, "who can read the key");
    refused({"--listen", "127.0.0.1:0", "--key-file", key, "--allow-kernels", "/nonexistent"},
            "is no directory");
    refused({"--listen", "192.0.2.1:0", "--key-file", key}, "cannot listen at 192.0.2.1:0");
}

TEST_F(Remote, IsFoundByThePortFile) {
    std::ifstream file(control::port_path(directory.path()));
    std::string port;
    ASSERT_TRUE(file >> port);
    EXPECT_EQ("127.0.0.1:" + port, daemon.address());
    daemon.signal(SIGTERM);
    EXPECT_EQ(daemon.wait(), 0);
    EXPECT_NE(access(control::port_path(directory.path()).c_str(), F_OK), 0);
}

TEST_F(Remote, TellsStrangersNothing) {
    const FileDescriptor stranger = connect_to(daemon.address());
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::byte bytes[256];
    EXPECT_EQ(recv(stranger.get(), bytes, sizeof bytes, MSG_DONTWAIT), 33) << "a challenge and no more";
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

// What a client reports if the device is not what it should be. `play` acts as the device.
class WrongDevice : public testing::Test {
  protected:
    void SetUp() override {
        std::string problem;
        ASSERT_EQ(control::listen_tcp({"127.0.0.1", 0}, listener, port, problem), Status::ok) << problem;
    }
    void expect_words(offpath_status_t status, std::initializer_list<std::string> words,
                      const std::function<void(MessageSocket&)>& play) {
        const std::string where = "127.0.0.1:" + std::to_string(port);
        Job job(1, directory.path(), [&](const Rank& me) {
            setenv("OFFPATH_DEVICES", where.c_str(), 1);
            setenv("OFFPATH_KEY_FILE", key.c_str(), 1);
            const std::string said = failing_init(me, status);
            require_words(said, {"rank 0", control::host_name(), where});
            require_words(said, words);
        });
        if (play) {
            const double give_up = now() + 5;
            FileDescriptor client;
            while (!client && now() < give_up)
                client = FileDescriptor(accept(listener.get(), nullptr, nullptr));
            MessageSocket socket = MessageSocket::over_tcp(std::move(client));
            play(socket);
        }
        EXPECT_EQ(job.wait(15), zeros(1));
    }
    TemporaryDirectory directory;
    const std::string key = write_key(directory.path() + "/key");
    FileDescriptor listener;
    std::uint16_t port = 0;
};

TEST_F(WrongDevice, IsNotThere) {
    listener.reset();
    expect_words(OFFPATH_ERR_UNAVAILABLE, {"no offpathd answers", "Connection refused"}, nullptr);
}

TEST_F(WrongDevice, DoesNotTakeTheConnection) {
    ASSERT_EQ(listen(listener.get(), 0), 0);
    FileDescriptor fill[4];
    for (FileDescriptor& client : fill) {
        std::string problem;
        (void)control::connect_tcp({"127.0.0.1", port}, 50, client, problem);
    }
    expect_words(OFFPATH_ERR_UNAVAILABLE, {"no offpathd answers", "timed out"}, nullptr);
}

TEST_F(WrongDevice, SaysNothing) {
    expect_words(OFFPATH_ERR_UNAVAILABLE, {"did not answer within 5 s"},
                 [](MessageSocket&) { std::this_thread::sleep_for(std::chrono::seconds(6)); });
}

TEST_F(WrongDevice, HangsUp) {
    expect_words(OFFPATH_ERR_UNAVAILABLE, {"closed the connection"},
                 [](MessageSocket& socket) { socket.close(); });
}

TEST_F(WrongDevice, IsSomethingElse) {
    expect_words(OFFPATH_ERR_PROTOCOL, {"no offpath message"}, [](MessageSocket& socket) {
        (void)send(socket.fd(), "SSH-2.0-OpenSSH_9.2p1\r\n", 23, MSG_NOSIGNAL);
        (void)next(socket);
    });
}

TEST_F(WrongDevice, SpeaksAnotherVersion) {
    expect_words(OFFPATH_ERR_VERSION, {"version 200"}, [](MessageSocket& socket) {
        auto bytes = control::encode_message(control::Challenge{});
        bytes[4] = std::byte{200};
        write_frame(socket.fd(), bytes);
        (void)next(socket);
    });
}

TEST_F(WrongDevice, HasAnotherByteOrder) {
    expect_words(OFFPATH_ERR_VERSION, {"byte order"}, [](MessageSocket& socket) {
        auto bytes = control::encode_message(control::Challenge{});
        std::reverse(bytes.begin() + 8, bytes.begin() + 12);
        write_frame(socket.fd(), bytes);
        (void)next(socket);
    });
}

TEST_F(WrongDevice, HasOtherWords) {
    expect_words(OFFPATH_ERR_VERSION, {"32 bits"}, [](MessageSocket& socket) {
        auto bytes = control::encode_message(control::Challenge{});
        bytes[12] = std::byte{4};
        write_frame(socket.fd(), bytes);
        (void)next(socket);
    });
}

TEST_F(WrongDevice, DoesNotKnowTheKey) {
    expect_words(OFFPATH_ERR_ACCESS, {"does not know the job's secret"}, [](MessageSocket& socket) {
        const control::Nonce nonce = control::draw_nonce();
        (void)socket.send(control::Challenge{nonce});
        const Message message = next(socket);
        const auto* hello = std::get_if<control::RemoteHello>(&message);
        ASSERT_NE(hello, nullptr);
        control::RemoteWelcome welcome;
        welcome.token = 1;
        const control::Secret secret =
            control::job_secret(key_of('x'), hello->hello.job_high, hello->hello.job_low, hello->issued);
        welcome.mac = control::handshake_mac(secret, nonce, hello->nonce, welcome);
        (void)socket.send(welcome);
        (void)next(socket);
    });
}

TEST_F(Remote, SaysWhichKeyIsWrong) {
    const std::string other = write_key(directory.path() + "/other", 'o');
    const std::string open_key = write_key(directory.path() + "/open", 'k', 0640);
    const auto fails = [&](const std::string& where, const std::string& file, offpath_status_t status,
                           std::initializer_list<std::string> words) {
        EXPECT_TRUE(all_right(1, directory.path(), [&](const Rank& me) {
            attach_to(where, file);
            require_words(failing_init(me, status), words);
        }));
    };
    fails(daemon.address(), other, OFFPATH_ERR_ACCESS,
          {daemon.address(), "not authenticated", "is OFFPATH_KEY_FILE the daemon's key?"});
    fails(daemon.address(), open_key, OFFPATH_ERR_ACCESS,
          {"no rank has the devices' key", open_key, "chmod 600"});
    fails(daemon.address(), "", OFFPATH_ERR_INVALID, {"OFFPATH_KEY_FILE is not set"});
    fails("nowhere=" + daemon.address(), key, OFFPATH_ERR_UNAVAILABLE,
          {"node " + control::host_name() + " is not in OFFPATH_DEVICES", "lists nowhere"});
    fails("127.0.0.1:port", key, OFFPATH_ERR_INVALID, {"OFFPATH_DEVICES", "'127.0.0.1:port' is no address"});
    EXPECT_TRUE(daemon.running());
}

TEST_F(Remote, SaysThatItsOwnNetworkDeviceIsNotThere) {
    EXPECT_TRUE(all_right(1, directory.path(), here([](const Rank& me) {
                              setenv("OFFPATH_HOST_DEVICES", "nope0", 1);
                              require_words(failing_init(me, OFFPATH_ERR_UNAVAILABLE),
                                            {"the device of node", "UCX_NET_DEVICES=nope0"});
                          })));
}

// A job that continues until it is told to stop, and checks the data that it receives.
void busy_job(const Rank& me) {
    offpath_context_h context = me.init();
    offpath_team_h world = me.world(context);
    auto* shared = static_cast<std::atomic<std::uint32_t>*>(me.shared);
    std::vector<std::uint32_t> go_on(1, 1);
    for (std::uint32_t i = 0; go_on[0] != 0; ++i) {
        const std::uint32_t wish = shared[1].load() == 0;
        std::vector<std::uint32_t> out(me.size * 5000, i), in(me.size * 5000);
        offpath_request_h a = nullptr, b = nullptr;
        expect(offpath_ialltoall(world, out.data(), in.data(), 20000, &a), OFFPATH_OK, "ialltoall");
        go_on[0] = wish;
        expect(offpath_ibcast(world, go_on.data(), 4, 0, &b), OFFPATH_OK, "ibcast");
        expect(offpath_request_wait(a), OFFPATH_OK, "wait");
        expect(offpath_request_wait(b), OFFPATH_OK, "wait");
        require(in.front() == i && in.back() == i, "data");
        offpath_request_free(a);
        offpath_request_free(b);
        shared->fetch_add(1);
    }
    expect(offpath_finalize(context), OFFPATH_OK, "finalize");
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

// A client with the key attaches, but a daemon with default settings runs none of its code.
TEST_F(Remote, RunsNoKernelsUnlessToldTo) {
    EXPECT_TRUE(all_right(1, directory.path(), here([](const Rank& me) {
                              offpath_context_h context = me.init();
                              offpath_kernel_h kernel = nullptr;
                              expect(offpath_kernel_load(context, "libc.so.6", "system", &kernel),
                                     OFFPATH_ERR_UNSUPPORTED, "load");
                              expect(offpath_kernel_load(context, OFFPATH_TEST_KERNELS, "test_step", &kernel),
                                     OFFPATH_ERR_UNSUPPORTED, "load");
                              expect(offpath_finalize(context), OFFPATH_OK, "finalize");
                          })));
    EXPECT_NE(daemon.log().find("--allow-kernels"), std::string::npos);
}

// With --allow-kernels, the daemon runs libraries of the given directory, as a user that cannot read the key.
TEST(RemoteKernels, AreOfTheirDirectoryAndOfAnotherUser) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, to run kernels as another user";
    TemporaryDirectory directory;
    const std::string key = write_key(directory.path() + "/key"), libraries = directory.path() + "/kernels";
    std::filesystem::create_directory(libraries);
    std::filesystem::copy_file(OFFPATH_TEST_KERNELS, libraries + "/kernels.so");
    chmod(directory.path().c_str(), 0755);
    DaemonProcess daemon{directory.path(),
                         {"--listen", "127.0.0.1:0", "--key-file", key, "--allow-kernels", libraries,
                          "--kernel-user", "nobody"}};
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    EXPECT_TRUE(all_right(1, directory.path(), [&](const Rank& me) {
        setenv("OFFPATH_DEVICES", daemon.address().c_str(), 1);
        setenv("OFFPATH_KEY_FILE", key.c_str(), 1);
        offpath_context_h context = me.init();
        offpath_kernel_h kernel = nullptr;
        for (const char* elsewhere : {"libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6", OFFPATH_TEST_KERNELS})
            expect(offpath_kernel_load(context, elsewhere, "system", &kernel), OFFPATH_ERR_INVALID,
                   elsewhere);
        expect(offpath_kernel_load(context, "kernels.so", "system", &kernel), OFFPATH_ERR_INVALID,
               "a symbol of a library that it needs");
        expect(offpath_kernel_load(context, "kernels.so", "test_user", &kernel), OFFPATH_OK, "load");
        std::uint32_t user = 0;
        expect(run(kernel, user, {{&user, sizeof user, OFFPATH_OUT}}), OFFPATH_OK, "run");
        require(user == 65534, "it runs as user " + std::to_string(user));
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
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
    const double give_up = now() + 5;
    while (daemon.descriptors() > descriptors && now() < give_up)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_LE(daemon.descriptors(), descriptors) << "descriptors were left open";
    const std::string log = daemon.log();
    EXPECT_LT(std::count(log.begin(), log.end(), '\n'), 100) << "strangers fill the log";
}

// A program unmaps a buffer that it sends from or receives into. That operation fails, and nothing else does.
TEST_F(Remote, UnmappedBuffersEndTheirOwnOperationOnly) {
    EXPECT_TRUE(all_right(2, directory.path(), here([](const Rank& me) {
                              offpath_context_h context = me.init();
                              constexpr std::size_t bytes = std::size_t{48} << 20;
                              for (const std::uint32_t who : {0u, 1u}) {
                                  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                                  require(memory != MAP_FAILED, "mmap");
                                  offpath_request_h request = nullptr;
                                  const offpath_team_h world = me.world(context);
                                  expect(me.rank == 0
                                             ? offpath_send_offload(world, memory, bytes, 1, 5, &request)
                                             : offpath_recv_offload(world, memory, bytes, 0, 5, &request),
                                         OFFPATH_OK, "start");
                                  if (me.rank == who) munmap(memory, bytes);
                                  const offpath_status_t status = offpath_request_wait(request);
                                  if (me.rank == who)
                                      expect(status, OFFPATH_ERR_ACCESS, "the owner of what was unmapped");
                                  require(status != OFFPATH_ERR_PEER_LOST, "nobody is lost");
                                  offpath_request_free(request);
                                  if (me.rank != who) munmap(memory, bytes);
                                  gather_once(context, me);
                              }
                              expect(offpath_finalize(context), OFFPATH_OK, "finalize");
                          })));
    EXPECT_EQ(daemon.log().find("ends:"), std::string::npos) << daemon.log();
}

// Uses up the device's memory: starts schedules of 30,000 ops each, one after the other, until the device
// refuses.
void take_all_memory(const Rank& me) {
    offpath_context_h context = me.init();
    const std::string path = me.directory + "/said";
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    dup2(file, 2);
    offpath_status_t status = OFFPATH_OK;
    static char word = 0;
    for (int i = 0; i < 300 && status == OFFPATH_OK; ++i) {
        offpath_group_h group = nullptr;
        expect(offpath_group_create(me.world(context), &group), OFFPATH_OK, "create");
        for (std::uint32_t tag = 0; tag < 15000; ++tag) {
            expect(offpath_group_send(group, &word, 0, me.rank, tag), OFFPATH_OK, "send");
            expect(offpath_group_recv(group, &word, 0, me.rank, tag), OFFPATH_OK, "recv");
        }
        expect(offpath_group_end(group), OFFPATH_OK, "end");
        status = offpath_group_start(group);
        if (status == OFFPATH_OK) status = offpath_group_wait(group);
    }
    expect(status, OFFPATH_ERR_PEER_LOST, "the device is at its limit");
    std::ifstream said(path);
    require_words(std::string(std::istreambuf_iterator<char>(said), {}),
                  {"127.0.0.1:", "no memory left", "rank 0"});
    expect(offpath_finalize(context), OFFPATH_OK, "finalize");
}

// One job asks for more memory than the device has. Only that job gets an error.
TEST_F(Remote, OutOfMemoryIsOneJobsAffair) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "sanitizers need address space without a limit";
#endif
    Job bystander(2, directory.path(), here(busy_job));
    wait_until_started(bystander, 20);
    std::size_t pages = 0;
    std::ifstream("/proc/" + std::to_string(daemon.pid()) + "/statm") >> pages;
    const rlimit limit{pages * 4096 + (std::size_t{48} << 20), RLIM_INFINITY};
    ASSERT_EQ(prlimit(daemon.pid(), RLIMIT_AS, &limit, nullptr), 0);
    EXPECT_TRUE(all_right(1, directory.path(), here(take_all_memory)));
    EXPECT_NE(daemon.log().find("no memory left"), std::string::npos) << daemon.log();
    // The memory that it took has been given back.
    EXPECT_TRUE(all_right(2, directory.path(), here([](const Rank& me) {
                              offpath_context_h context = me.init();
                              gather_once(context, me);
                              expect(offpath_finalize(context), OFFPATH_OK, "finalize");
                          })));
    static_cast<std::atomic<std::uint32_t>*>(bystander.shared())[1] = 1;
    EXPECT_EQ(bystander.wait(), zeros(2));
    EXPECT_TRUE(daemon.running());
}

// Strangers that stay silent are dropped after 5 s.
TEST_F(Remote, DropsSilentStrangers) {
    MessageSocket socket = MessageSocket::over_tcp(connect_to(daemon.address()));
    const double start = now();
    (void)next(socket);
    EXPECT_TRUE(std::holds_alternative<control::Goodbye>(next(socket)));
    EXPECT_GT(now() - start, 4);
    EXPECT_LT(now() - start, 7);
}

// The device's system stops without a word. No connection is closed.
TEST_F(Remote, SilentDeviceIsLost) {
    Job job(2, directory.path(), here([](const Rank& me) {
                offpath_context_h context = me.init();
                auto* shared = static_cast<std::atomic<std::uint32_t>*>(me.shared);
                gather_once(context, me);
                char word = 0;
                offpath_request_h request = nullptr;
                expect(offpath_recv_offload(me.world(context), &word, 1, OFFPATH_ANY_SOURCE, 0, &request),
                       OFFPATH_OK, "recv");
                shared->fetch_add(1);
                const double start = now();
                expect(offpath_request_wait(request), OFFPATH_ERR_PEER_LOST, "wait");
                require(now() - start < 12, "it took too long");
                offpath_request_free(request);
                expect(offpath_finalize(context), OFFPATH_OK, "finalize");
            }));
    wait_until_started(job, 2);
    daemon.signal(SIGSTOP);
    const double stopped = now();
    EXPECT_EQ(job.wait(20), zeros(2));
    EXPECT_LT(now() - stopped, 10);
    daemon.signal(SIGCONT);
    daemon.signal(SIGKILL);
    daemon.wait();
}

// The host's system stops. Its peers are told, and the device continues to serve others.
TEST_F(Remote, SilentHostIsLost) {
    Job job(2, directory.path(), here([](const Rank& me) {
                offpath_context_h context = me.init();
                auto* shared = static_cast<std::atomic<std::uint32_t>*>(me.shared);
                gather_once(context, me);
                shared->fetch_add(1);
                if (me.rank == 1) {
                    std::this_thread::sleep_for(std::chrono::seconds(60));
                    _exit(3);
                }
                char word = 0;
                offpath_request_h request = nullptr;
                expect(offpath_recv_offload(me.world(context), &word, 1, 1, 0, &request), OFFPATH_OK, "recv");
                expect(offpath_request_wait(request), OFFPATH_ERR_PEER_LOST, "wait");
                offpath_request_free(request);
                expect(offpath_finalize(context), OFFPATH_OK, "finalize");
                kill(static_cast<pid_t>(shared[2].load()), SIGKILL);
            }));
    static_cast<std::atomic<std::uint32_t>*>(job.shared())[2] = static_cast<std::uint32_t>(job.pid(1));
    wait_until_started(job, 2);
    kill(job.pid(1), SIGSTOP);
    const double stopped = now();
    EXPECT_EQ(job.wait(20), (std::vector<int>{0, -1}));
    EXPECT_LT(now() - stopped, 12);
    EXPECT_NE(daemon.log().find("nothing was heard of it for 8 s"), std::string::npos) << daemon.log();
    EXPECT_TRUE(daemon.running());
}

double own_cpu_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// A program that computes for long does not look dead to either side. What keeps it alive costs next to
// nothing.
TEST_F(Remote, LongComputationsAreNoLoss) {
    EXPECT_TRUE(all_right(2, directory.path(), here([](const Rank& me) {
                              offpath_context_h context = me.init();
                              gather_once(context, me);
                              const double before = own_cpu_seconds();
                              std::this_thread::sleep_for(std::chrono::seconds(10));
                              const double used = own_cpu_seconds() - before;
                              require(used < 0.1,
                                      "1 % of 10 s are not enough: " + std::to_string(used) + " s");
                              gather_once(context, me);
                              expect(offpath_finalize(context), OFFPATH_OK, "finalize");
                          })));
}

}  // namespace
}  // namespace offpath::test
