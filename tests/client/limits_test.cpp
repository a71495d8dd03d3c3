// How much of a proxy one client may use: the ranks of its teams and windows. The job has one process, which
// claims that it has many more ranks, all at its own proxy.
#include "client/context.h"
#include "harness.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

namespace offpath::test {
namespace {

constexpr std::uint32_t ranks = 1 << 18;
// proxy/session.h has both limits.
constexpr std::uint64_t max_members = 1 << 22, window_members = 8;
static_assert(2 * window_members * ranks + ranks > max_members && window_members * ranks < max_members);

int same_from_all(void*, const void* mine, std::size_t bytes, void* all) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
        std::memcpy(static_cast<std::byte*>(all) + rank * bytes, mine, bytes);
    return 0;
}

offpath_context_h init_for_all(const Rank& me) {
    offpath_init_params_t params{};
    params.struct_size = sizeof params;
    params.size = ranks;
    params.allgather = same_from_all;
    params.directory = me.directory.c_str();
    offpath_context_h context = nullptr;
    expect(offpath_init(&params, &context), OFFPATH_OK, "init");
    return context;
}

// Does the same as offpath_window_create, without the other ranks' part.
template <typename Command>
Status ask(offpath_context& context, std::uint64_t window) {
    offpath_request* request = nullptr;
    require(context.new_request(&request) == Status::ok, "a request");
    Command command;
    command.team = context.world->id;
    command.window = window;
    command.completion = request->slot;
    require(context.post(command) == Status::ok, "a command");
    context.ring();
    const Status status = context.wait(*request);
    offpath_request_free(request);
    return status;
}

// Makes a team of all ranks and sends a message from this rank to itself through it. Where the daemon refuses
// the team it ends the session, which the client may notice at any of these calls.
offpath_status_t make_and_use_team(offpath_context_h context, std::uint64_t id) {
    std::vector<std::uint32_t> all(ranks);
    std::iota(all.begin(), all.end(), 0);
    offpath_team_h team = nullptr;
    const offpath_status_t made = offpath_team_create(context, all.data(), ranks, id, &team);
    if (made != OFFPATH_OK) return made;
    int out = 5, in = 0;
    offpath_request_h send = nullptr, recv = nullptr;
    if (offpath_recv_offload(team, &in, sizeof in, 0, 1, &recv) != OFFPATH_OK) return OFFPATH_ERR_PEER_LOST;
    const offpath_status_t started = offpath_send_offload(team, &out, sizeof out, 0, 1, &send);
    const offpath_status_t status = offpath_request_wait(recv);
    if (started == OFFPATH_OK) (void)offpath_request_wait(send);
    require(status != OFFPATH_OK || in == out, "data");
    return status;
}

TEST(Limits, RanksOfTeamsAndWindowsAreCounted) {
    TemporaryDirectory directory;
    DaemonProcess daemon(directory.path());
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    EXPECT_TRUE(all_right(1, directory.path(), [](const Rank& me) {
        offpath_context_h context = init_for_all(me);
        // One window fits beside the team of all ranks. A second one fits only after the first has ended.
        require(ask<control::CreateWindow>(*context, 1) == Status::ok, "the first window");
        require(ask<control::CreateWindow>(*context, 2) == Status::memory, "the second window");
        require(ask<control::DestroyWindow>(*context, 1) == Status::ok, "the end of the first window");
        require(ask<control::CreateWindow>(*context, 3) == Status::ok, "a window in its place");
        // Teams fill the rest.
        std::uint64_t left = max_members - (window_members + 1) * ranks, id = 1;
        for (; left >= ranks; left -= ranks)
            expect(make_and_use_team(context, id++), OFFPATH_OK, "a team that fits");
        require(ask<control::DestroyWindow>(*context, 3) == Status::ok, "the end of the window");
        for (std::uint64_t i = 0; i < window_members; ++i)
            expect(make_and_use_team(context, id++), OFFPATH_OK, "a team in the window's place");
        expect(make_and_use_team(context, id++), OFFPATH_ERR_PEER_LOST, "a team too many");
    }));
    EXPECT_NE(daemon.log().find("all teams together may have 0 more"), std::string::npos) << daemon.log();
    // The daemon continues for other clients.
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_request_h request = nullptr;
        expect(offpath_ibarrier(me.world(context), &request), OFFPATH_OK, "start");
        expect(offpath_request_wait(request), OFFPATH_OK, "wait");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

}  // namespace
}  // namespace offpath::test
