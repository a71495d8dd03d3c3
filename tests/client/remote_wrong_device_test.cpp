// Remote attach: what clients report if the device, the key or the network device is not what it should be.
#include "remote_fixture.h"

#include <functional>

namespace offpath::test {
namespace {

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
            const double give_up = now() + 20;
            FileDescriptor client;
            while (!client && now() < give_up)
                client = FileDescriptor(accept(listener.get(), nullptr, nullptr));
            MessageSocket socket = MessageSocket::over_tcp(std::move(client));
            play(socket);
        }
        EXPECT_EQ(job.wait(30), zeros(1));
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
    expect_words(OFFPATH_ERR_UNAVAILABLE, {"did not answer within 5 s"}, [](MessageSocket& socket) {
        while (!socket.peer_closed())
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
    });
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

}  // namespace
}  // namespace offpath::test
