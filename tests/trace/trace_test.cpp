// What is in a trace file: after a kill, when it is full, and for several threads. Each case runs in a child,
// since a process has one trace.
#include "trace/trace.h"
#include "trace/machine_clock.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>
#include <vector>

namespace offpath::trace {
namespace {

struct Read {
    FileHeader header{};
    std::vector<std::string> names;
    std::vector<std::vector<Record>> chunks;
    std::vector<ChunkHeader> threads;
};

Read read_only_file(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        files.push_back(entry.path());
    Read read;
    EXPECT_EQ(files.size(), 1U);
    if (files.empty()) return read;
    std::ifstream stream(files[0], std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    std::memcpy(&read.header, bytes.data(), sizeof read.header);
    EXPECT_EQ(read.header.magic, magic);
    EXPECT_GE(bytes.size(), header_bytes + read.header.chunks * chunk_bytes);
    for (std::size_t at = 0; at < read.header.names_bytes;) {
        read.names.emplace_back(bytes.data() + names_offset + at);
        at += read.names.back().size() + 1;
    }
    for (std::uint64_t i = 0; i < read.header.chunks; ++i) {
        const char* const chunk = bytes.data() + header_bytes + i * chunk_bytes;
        std::memcpy(&read.threads.emplace_back(), chunk, sizeof(ChunkHeader));
        auto& records = read.chunks.emplace_back(read.threads.back().records);
        std::memcpy(records.data(), chunk + sizeof(ChunkHeader), records.size() * sizeof(Record));
    }
    return read;
}

// Runs `write` in a child that traces, which is killed at the end.
Read traced(std::uint64_t most_bytes, const std::function<void()>& write) {
    std::string folder = std::filesystem::temp_directory_path() / "offpath-trace-XXXXXX";
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    const pid_t child = fork();
    if (child == 0) {
        setenv("OFFPATH_TRACE", (folder + "/made").c_str(), 1);
        setenv("OFFPATH_TRACE_BYTES", std::to_string(most_bytes).c_str(), 1);
        About about;
        about.node = "n";
        about.program = "p";
        about.rank = 3;
        std::string problem;
        if (open_from_environment(about, problem) != Status::ok) _exit(1);
        write();
        kill(getpid(), SIGKILL);
    }
    int ended = 0;
    waitpid(child, &ended, 0);
    EXPECT_TRUE(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL);
    Read read = read_only_file(folder + "/made");
    std::filesystem::remove_all(folder);
    return read;
}

TEST(Trace, IsWholeAfterAKill) {
    const Read read = traced(1 << 20, [] {
        begin(Kind::operation, 7, 100, 2, number_of("alltoall"));
        end(Kind::operation, 7);
        const Span span(Kind::reduce, 50);
    });
    EXPECT_EQ(read.header.rank, 3);
    EXPECT_EQ(read.header.dropped, 0U);
    ASSERT_EQ(read.chunks.size(), 1U);
    const auto& records = read.chunks[0];
    ASSERT_EQ(records.size(), 4U);
    EXPECT_EQ(read.names[records[0].what], "alltoall");
    EXPECT_EQ(records[0].kind_phase, static_cast<unsigned>(Kind::operation) * 4);
    EXPECT_EQ(records[1].kind_phase, static_cast<unsigned>(Kind::operation) * 4 + 1);
    EXPECT_EQ(records[0].id, 7U);
    EXPECT_EQ(records[0].bytes, 100U);
    EXPECT_EQ(records[0].other, 2U);
    EXPECT_EQ(records[2].bytes, 50U);
    EXPECT_TRUE(std::is_sorted(records.begin(), records.end(),
                               [](const Record& a, const Record& b) { return a.time_ns < b.time_ns; }));
    ASSERT_EQ(read.header.kinds, std::size(kind_names));
    EXPECT_EQ(read.names[static_cast<std::size_t>(Kind::stayed)], "stayed");
}

TEST(Trace, DropsAndCountsWhatHasNoRoom) {
    const Read read = traced(2 * chunk_bytes, [] {
        for (std::uint64_t i = 0; i < 2 * records_per_chunk + 10; ++i)
            instant(Kind::proxy, i);
    });
    EXPECT_EQ(read.header.dropped, 10U);
    ASSERT_EQ(read.chunks.size(), 2U);
    EXPECT_EQ(read.chunks[0].size(), records_per_chunk);
    EXPECT_EQ(read.chunks[1].back().id, 2 * records_per_chunk - 1);
}

TEST(Trace, AFullDiskDropsRecords) {
    const Read read = traced(1 << 20, [] {
        const rlimit limit{header_bytes + chunk_bytes, header_bytes + chunk_bytes};
        setrlimit(RLIMIT_FSIZE, &limit);
        signal(SIGXFSZ, SIG_IGN);
        for (std::uint64_t i = 0; i < records_per_chunk + 5; ++i)
            instant(Kind::proxy, i);
    });
    EXPECT_EQ(read.chunks.size(), 1U);
    EXPECT_EQ(read.header.dropped, 5U);
}

TEST(Trace, AFileThatCannotBeginIsRemoved) {
    std::string folder = std::filesystem::temp_directory_path() / "offpath-trace-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    const pid_t child = fork();
    if (child == 0) {
        const rlimit limit{header_bytes / 2, header_bytes / 2};
        setrlimit(RLIMIT_FSIZE, &limit);
        signal(SIGXFSZ, SIG_IGN);
        setenv("OFFPATH_TRACE", folder.c_str(), 1);
        std::string problem;
        const Status status = open_from_environment({}, problem);
        _exit(status == Status::system && !on() && !problem.empty() ? 0 : 1);
    }
    int ended = 0;
    waitpid(child, &ended, 0);
    EXPECT_TRUE(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    EXPECT_TRUE(std::filesystem::is_empty(folder));
    std::filesystem::remove_all(folder);
}

TEST(Trace, ThreadsHaveChunksOfTheirOwn) {
    const Read read = traced(4 << 20, [] {
        std::vector<std::thread> threads;
        for (std::uint64_t t = 0; t < 4; ++t)
            threads.emplace_back([t] {
                for (std::uint64_t i = 0; i < 1000; ++i)
                    instant(Kind::proxy, t);
            });
        for (std::thread& thread : threads)
            thread.join();
    });
    ASSERT_EQ(read.chunks.size(), 4U);
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(read.chunks[i].size(), 1000U);
        for (const Record& record : read.chunks[i])
            EXPECT_EQ(record.id, read.chunks[i][0].id);
        for (std::size_t j = 0; j < i; ++j)
            EXPECT_NE(read.threads[i].thread, read.threads[j].thread);
    }
}

TEST(Trace, PollsInARowBecomeOne) {
    const Read read = traced(1 << 20, [] {
        const std::uint16_t test = number_of("MPI_Test"), probe = number_of("MPI_Iprobe");
        std::uint64_t now = 0;
        for (int i = 0; i < 100; ++i) {
            timespec time{};
            clock_gettime(CLOCK_MONOTONIC, &time);
            now = static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
                  static_cast<std::uint64_t>(time.tv_nsec);
            put_poll(now, test);
        }
        put_poll(now, probe);
        put_poll(now, test);
    });
    ASSERT_EQ(read.chunks.size(), 1U);
    std::uint64_t calls = 0;
    for (const Record& record : read.chunks[0])
        if (record.kind_phase % 4 == 1) calls += record.id;
    EXPECT_EQ(calls, 102U);
    EXPECT_LT(read.chunks[0].size(), 2 * 102U);
}

TEST(Trace, AChildOfTheProcessWritesNothing) {
    const Read read = traced(1 << 20, [] {
        const pid_t child = fork();
        if (child == 0) {
            instant(Kind::proxy, 1);
            _exit(0);
        }
        waitpid(child, nullptr, 0);
        instant(Kind::proxy, 2);
    });
    ASSERT_EQ(read.chunks.size(), 1U);
    ASSERT_EQ(read.chunks[0].size(), 1U);
    EXPECT_EQ(read.chunks[0][0].id, 2U);
}

TEST(Trace, StartsHaveNumbersOfTheirOwn) {
    std::vector<std::uint64_t> ids;
    for (std::uint64_t team : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{1} << 63})
        for (std::uint32_t rank = 0; rank < 20; ++rank)
            for (std::uint32_t sequence = 0; sequence < 50; ++sequence)
                ids.push_back(id_of_start(team, rank, sequence));
    for (int i = 0; i < 100; ++i)
        ids.push_back(new_id());
    std::sort(ids.begin(), ids.end());
    EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
}

TEST(MachineClock, HasTheNameOfItsSystemAndShift) {
    const std::string id = "0b9ad3a7-9c31-4f13-8d2c-5f0ce1a2b3c4";
    EXPECT_EQ(machine_clock(id + "\n", ""), id) << "a system without time namespaces";
    EXPECT_EQ(machine_clock(id + "\n", "monotonic           0         0\nboottime            0         0\n"),
              id);
    EXPECT_EQ(machine_clock(id + "\n", "monotonic        5000        70\nboottime         5000         0\n"),
              "0b9ad3a7-9c3+5000.000000070");
    EXPECT_EQ(machine_clock(id, "monotonic        -5         0\n"), "0b9ad3a7-9c3-5.000000000");
    EXPECT_LE(machine_clock(id, "monotonic -9223372036854775807 999999999\n").size(), 39u);
}

}  // namespace
}  // namespace offpath::trace
