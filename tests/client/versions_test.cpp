// Sides of different versions: an older and a newer one each meet today's. Both must say which versions met
// and what to do, at once, and the daemon must go on for others.
#include "control/socket.h"
#include "remote_fixture.h"

#include <poll.h>

namespace offpath::test {
namespace {

using control::protocol_version;

std::vector<std::byte> of_version(std::uint16_t version, const Message& message) {
    std::vector<std::byte> bytes = control::encode_message(message);
    std::memcpy(&bytes[4], &version, sizeof version);
    return bytes;
}

std::uint16_t version_of(std::span<const std::byte> bytes) {
    std::uint16_t version = 0;
    if (bytes.size() >= 6) std::memcpy(&version, &bytes[4], sizeof version);
    return version;
}

std::string install_one(int theirs) {
    return "it speaks protocol version " + std::to_string(theirs) + ", this side version " +
           std::to_string(protocol_version) + ": install one version of offpath";
}

void short_job(const Rank& me) {
    offpath_context_h context = me.init();
    gather_once(context, me);
    expect(offpath_finalize(context), OFFPATH_OK, "finalize");
}

class Versions : public testing::TestWithParam<int> {
  protected:
    std::uint16_t other() const { return static_cast<std::uint16_t>(protocol_version + GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Difference, Versions, testing::Values(-2, -1, 1, 200));

TEST_P(Versions, DaemonRefusesAClient) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    FileDescriptor connection;
    std::string problem;
    ASSERT_EQ(control::connect_to(control::socket_path(directory.path()), connection, problem), Status::ok)
        << problem;
    // A hello of another version has another length, too.
    std::vector<std::byte> hello = of_version(other(), control::Hello{});
    hello.resize(hello.size() + 12);
    ASSERT_EQ(send(connection.get(), hello.data(), hello.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(hello.size()));
    std::byte answer[1024];
    const ssize_t got = recv(connection.get(), answer, sizeof answer, 0);
    ASSERT_GT(got, 0);
    EXPECT_EQ(version_of(std::span(answer).first(static_cast<std::size_t>(got))), protocol_version);
    EXPECT_EQ(recv(connection.get(), answer, sizeof answer, 0), 0) << "it hangs up";
    EXPECT_NE(daemon.log().find(install_one(other())), std::string::npos) << daemon.log();
    EXPECT_TRUE(all_right(2, directory.path(), short_job));
}

TEST_P(Versions, DaemonRefusesARemoteClient) {
    TemporaryDirectory directory;
    const std::string key = write_key(directory.path() + "/key");
    DaemonProcess daemon(directory.path(), {"--listen", "127.0.0.1:0", "--key-file", key});
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    MessageSocket socket = MessageSocket::over_tcp(connect_to(daemon.address()));
    const Message challenge = next(socket);
    write_frame(socket.fd(), of_version(other(), hello_for(challenge, key_of())));
    const Message answer = next(socket);
    const auto* refusal = std::get_if<control::Refusal>(&answer);
    ASSERT_NE(refusal, nullptr);
    EXPECT_EQ(refusal->status, Status::version);
    EXPECT_NE(refusal->text.find(install_one(other())), std::string::npos) << refusal->text;
    EXPECT_NE(daemon.log().find(install_one(other())), std::string::npos) << daemon.log();
}

// What a client says about a daemon that answers its hello with a message of another version.
TEST_P(Versions, ClientRefusesADaemon) {
    TemporaryDirectory directory;
    FileDescriptor listener;
    std::string problem;
    ASSERT_EQ(control::listen_at(control::socket_path(directory.path()), listener, problem), Status::ok)
        << problem;
    Job job(1, directory.path(), [&](const Rank& me) {
        require_words(failing_init(me, OFFPATH_ERR_VERSION),
                      {"rank 0", control::host_name(), control::socket_path(me.directory),
                       install_one(other()), "OFP-0102"});
    });
    pollfd entry{listener.get(), POLLIN, 0};
    ASSERT_EQ(poll(&entry, 1, 10'000), 1);
    const FileDescriptor client(accept(listener.get(), nullptr, nullptr));
    std::byte hello[4096];
    EXPECT_GT(recv(client.get(), hello, sizeof hello, 0), 0);
    const auto answer = of_version(other(), control::Refusal{Status::version, "words of another version"});
    EXPECT_EQ(send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(answer.size()));
    EXPECT_EQ(job.wait(15), zeros(1));
}

// The ranks exchange their versions before anything else. Its place in the records is the same in all
// versions; those up to 16 have zeros there.
constexpr std::size_t seed_bytes = 64, version_offset = 30;
std::uint16_t pretended_version = 0;

int gather_with_pretence(void* user, const void* mine, std::size_t bytes, void* all) {
    const Rank& me = *static_cast<const Rank*>(user);
    std::vector<std::byte> record(bytes);
    std::memcpy(record.data(), mine, bytes);
    static int calls = 0;
    if (calls++ == 0) {
        require(bytes == seed_bytes &&
                    version_of(std::span(record).subspan(version_offset - 4)) == protocol_version,
                "the version in the first record");
        if (me.rank == 1) std::memcpy(&record[version_offset], &pretended_version, sizeof pretended_version);
    }
    return me.allgather(me.allgather_user, record.data(), bytes, all);
}

void refused_by_the_ranks(const std::string& said_version) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    EXPECT_TRUE(all_right(3, directory.path(), [&](const Rank& me) {
        Rank other = me;
        other.allgather = gather_with_pretence;
        other.allgather_user = const_cast<Rank*>(&me);
        if (me.rank == 0) {
            require_words(failing_init(other, OFFPATH_ERR_VERSION),
                          {"rank 0", "the library of rank 1 speaks protocol version " + said_version,
                           "this one version " + std::to_string(protocol_version), "install one version"});
        } else {
            offpath_context_h context = nullptr;
            expect(other.try_init(&context), OFFPATH_ERR_VERSION, "init");
        }
    }));
    EXPECT_TRUE(all_right(2, directory.path(), short_job));
}

TEST_P(Versions, RanksRefuseALibrary) {
    pretended_version = other();
    refused_by_the_ranks(std::to_string(other()));
}

TEST(VersionsOfRanks, UpTo16AreToldApart) {
    pretended_version = 0;
    refused_by_the_ranks("16 or older");
}

}  // namespace
}  // namespace offpath::test
