// LastMeeting among threads that stand for ranks. This file has the host's MPI's part.
#include <gtest/gtest.h>
#include <mpi.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <barrier>
#include <cstring>
#include <thread>
#include <vector>

#include "base/file_descriptor.h"
#include "runtime/last_meeting.h"

namespace {

struct Job {
    explicit Job(int size, int threads) : ranks(size), all(threads) {}
    int ranks;
    std::barrier<> all;
    std::vector<char> said;
};
Job* job = nullptr;
thread_local int own_rank = 0;

}  // namespace

extern "C" {

int PMPI_Comm_rank(MPI_Comm, int* rank) {
    *rank = own_rank;
    return MPI_SUCCESS;
}

int PMPI_Comm_size(MPI_Comm, int* size) {
    *size = job->ranks;
    return MPI_SUCCESS;
}

int PMPI_Bcast(void* buffer, int count, MPI_Datatype, int, MPI_Comm) {
    auto* const bytes = static_cast<char*>(buffer);
    if (own_rank == 0) job->said.assign(bytes, bytes + count);
    job->all.arrive_and_wait();
    std::memcpy(bytes, job->said.data(), static_cast<std::size_t>(count));
    return MPI_SUCCESS;
}

}  // extern "C"

namespace offpath::mpi {
namespace {

// Runs `rank` on as many threads.
template <typename Rank>
void run(int ranks, Rank rank) {
    Job here(ranks, ranks);
    job = &here;
    std::vector<std::thread> threads;
    for (int i = 0; i < ranks; ++i)
        threads.emplace_back([&, i] {
            own_rank = i;
            rank();
        });
    for (std::thread& thread : threads)
        thread.join();
}

// The port that this process listens on.
sockaddr_in6 listening_place(socklen_t& length) {
    sockaddr_in6 place{};
    for (int file = 3; file < 1024; ++file) {
        int listens = 0;
        socklen_t size = sizeof listens;
        if (getsockopt(file, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) continue;
        length = sizeof place;
        getsockname(file, reinterpret_cast<sockaddr*>(&place), &length);
    }
    return place;  // any address of this machine will do, and so does none
}

TEST(LastMeeting, NobodyGoesOnBeforeAllHaveCome) {
    for (const int ranks : {1, 2, 3, 5, 8}) {
        std::atomic<int> came{0};
        run(ranks, [&] {
            LastMeeting meeting(MPI_COMM_NULL);
            ++came;
            EXPECT_TRUE(meeting.wait_for_all());
            EXPECT_EQ(came, ranks);
        });
    }
}

TEST(LastMeeting, LargeJobsDoNotMeet) {
    Job here(513, 1);
    job = &here;
    LastMeeting meeting(MPI_COMM_NULL);
    EXPECT_FALSE(meeting.wait_for_all());
}

TEST(LastMeeting, StrangersAreNotCounted) {
    run(2, [] {
        LastMeeting meeting(MPI_COMM_NULL);
        if (own_rank == 0) {
            EXPECT_TRUE(meeting.wait_for_all());
            return;
        }
        socklen_t length = 0;
        sockaddr_in6 place = listening_place(length);
        std::array<FileDescriptor, 3> strangers;
        for (FileDescriptor& stranger : strangers) {
            stranger = FileDescriptor(socket(place.sin6_family, SOCK_STREAM, 0));
            ASSERT_EQ(connect(stranger.get(), reinterpret_cast<sockaddr*>(&place), length), 0);
        }
        // The first one says nothing. The second one says something wrong, and is shown the door.
        const std::array<char, 24> wrong{};
        ASSERT_EQ(send(strangers[1].get(), wrong.data(), wrong.size(), 0), 24);
        char answer = 0;
        EXPECT_LE(recv(strangers[1].get(), &answer, 1, 0), 0);
        strangers[2].reset();
        EXPECT_TRUE(meeting.wait_for_all());
    });
}

}  // namespace
}  // namespace offpath::mpi
