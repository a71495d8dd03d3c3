// Remote attach, always over TCP: how memory is reached, who gets the secret, which kernels run.
#include "kernel_calls.h"
#include "remote_fixture.h"

#include <signal.h>
#include <sys/mman.h>

#include <filesystem>

namespace offpath::test {
namespace {

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

}  // namespace
}  // namespace offpath::test
