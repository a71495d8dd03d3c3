// What the tests of remote attach share: keys, handshakes made by hand, a daemon that listens at an address,
// and the bodies of jobs that attach to it.
#pragma once

#include "control/authentication.h"
#include "control/message_socket.h"
#include "control/tcp_socket.h"
#include "harness.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <ctime>
#include <fstream>

namespace offpath::test {

using control::Message;
using control::MessageSocket;

inline std::vector<int> zeros(std::size_t count) {
    return std::vector<int>(count, 0);
}

inline std::string write_key(const std::string& path, char fill = 'k', mode_t mode = 0600) {
    std::ofstream(path, std::ios::trunc) << std::string(32, fill);
    chmod(path.c_str(), mode);
    return path;
}

inline control::Key key_of(char fill = 'k') {
    return control::Key(std::vector<std::byte>(32, static_cast<std::byte>(fill)));
}

inline FileDescriptor connect_to(const std::string& where) {
    control::TcpAddress address;
    FileDescriptor socket;
    std::string problem;
    EXPECT_EQ(control::parse_tcp_address(where, address, problem), Status::ok) << problem;
    EXPECT_EQ(control::connect_tcp(address, 2000, socket, problem), Status::ok) << problem;
    return socket;
}

inline Message next(MessageSocket& socket) {
    Message message = control::Goodbye{};  // stands for "it hung up"
    std::vector<FileDescriptor> descriptors;
    std::string problem;
    (void)socket.receive(8000, message, descriptors, problem);
    return message;
}

inline void write_frame(int fd, const std::vector<std::byte>& bytes, bool swapped = false) {
    auto length = static_cast<std::uint32_t>(bytes.size());
    if (swapped) length = __builtin_bswap32(length);
    (void)send(fd, &length, sizeof length, MSG_NOSIGNAL);
    (void)send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

inline control::RemoteHello hello_for(const Message& challenge, const control::Key& key,
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
    // More options of the daemon.
    explicit Remote(std::vector<std::string> more = {}) : more_options(std::move(more)) {}
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
    const std::vector<std::string> more_options;
    DaemonProcess daemon{directory.path(), options()};

  private:
    std::vector<std::string> options() const {
        std::vector<std::string> all{"--listen", "127.0.0.1:0", "--key-file", key};
        all.insert(all.end(), more_options.begin(), more_options.end());
        return all;
    }
};

// Called in a rank whose init fails. Returns the text of the error.
inline std::string failing_init(const Rank& me, offpath_status_t wanted) {
    const std::string path = me.directory + "/said";
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600), err = dup(2);
    dup2(file, 2);
    offpath_context_h context = nullptr;
    const offpath_status_t status = me.try_init(&context);
    dup2(err, 2);
    expect(status, wanted, "init");
    std::ifstream said(path);
    return std::string(std::istreambuf_iterator<char>(said), {});
}

inline void require_words(const std::string& text, std::initializer_list<std::string> words) {
    for (const std::string& word : words)
        require(text.find(word) != std::string::npos, "'" + word + "' is missing in: " + text);
}

inline void gather_once(offpath_context_h context, const Rank& me) {
    std::vector<std::uint32_t> all(me.size);
    offpath_request_h request = nullptr;
    expect(offpath_iallgather(me.world(context), &me.rank, all.data(), 4, &request), OFFPATH_OK, "start");
    expect(offpath_request_wait(request), OFFPATH_OK, "wait");
    for (std::uint32_t i = 0; i < me.size; ++i)
        require(all[i] == i, "data");
    offpath_request_free(request);
}

// A job that continues until it is told to stop, and checks the data that it receives.
inline void busy_job(const Rank& me) {
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

}  // namespace offpath::test
