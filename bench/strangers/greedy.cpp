#include "greedy.h"

#include "control/limits.h"
#include "schedule/builder.h"
#include "schedule/wire.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace strangers {

using namespace offpath;

namespace {

constexpr std::size_t max_teams = 1 << 16, max_windows = 1 << 16, max_schedules = 1 << 16;
constexpr std::size_t max_schedule_total = std::size_t{512} << 20;
constexpr std::size_t max_regions = 4096, max_operations = 4096;
constexpr std::size_t max_members = 1 << 22;

constexpr std::uint64_t first_team = 1;

void expect(bool holds, const char* what) {
    if (!holds) throw std::runtime_error(fmt::format("a session was not given what it may have: {}", what));
}

// A team of the job's first ranks. They are all this process.
void make_team(Session& session, std::uint64_t team, std::uint32_t size = 1) {
    constexpr std::uint32_t part = control::max_part_bytes / sizeof(std::uint32_t);
    std::vector<std::uint32_t> ranks(size);
    std::iota(ranks.begin(), ranks.end(), 0);
    for (std::uint32_t first = 0; first < size; first += part) {
        const auto some = std::span<const std::uint32_t>(ranks).subspan(first, std::min(part, size - first));
        expect(session.post(control::CreateTeam{team, 0, size, first, pack(some)}), "a team");
    }
}

void make_window(Session& session, std::uint64_t window) {
    control::CreateWindow command;
    command.team = first_team;
    command.window = window;
    command.completion = 0;
    session.channel().completion(0).word.store(0);
    expect(session.post(command) && session.wait(0), "an answer about a window");
}

// The encoding has about this size. Most of it are arguments of kernels.
std::vector<std::byte> schedule_of(std::size_t bytes) {
    schedule::Builder builder(0, 1);
    const auto from = builder.user_slot(4096), to = builder.user_slot(4096);
    builder.copy({from, 0}, {to, 0}, 4096);
    schedule::KernelCall call;
    call.kernel = 1;
    call.arguments.resize(schedule::max_call_arguments);
    call.buffers.push_back({{to, 0}, 4096, schedule::Access::inout});
    for (std::size_t used = 0; used < bytes; used += call.arguments.size())
        builder.compute(call);
    return schedule::encode(builder.finish());
}

void send_schedule(Session& session, std::uint64_t id, std::span<const std::byte> encoded) {
    for (std::size_t at = 0; at < encoded.size(); at += control::max_part_bytes) {
        const auto part = encoded.subspan(at, std::min(control::max_part_bytes, encoded.size() - at));
        expect(session.post(control::SchedulePart{id, encoded.size(), at, part}), "a schedule");
    }
}

std::size_t take_teams(Session& session) {
    for (std::size_t i = 1; i < max_teams; ++i)  // the first one is there
        make_team(session, first_team + i);
    return max_teams;
}

std::size_t take_windows(Session& session) {
    for (std::size_t i = 1; i < max_windows; ++i)
        make_window(session, i);
    return max_windows;
}

std::size_t take_members(Session& session) {
    for (std::size_t i = 1; i < max_members / control::max_job_size; ++i)
        make_team(session, first_team + i, control::max_job_size);
    return max_members;
}

std::size_t take_schedules(Session& session) {
    const std::vector<std::byte> small = schedule_of(0);
    for (std::size_t i = 0; i < max_schedules; ++i)
        send_schedule(session, i + 1, small);
    return max_schedules;
}

std::size_t take_schedule_bytes(Session& session) {
    const std::vector<std::byte> large = schedule_of(std::size_t{4} << 20);
    const std::size_t count = max_schedule_total / large.size();
    for (std::size_t i = 0; i < count; ++i)
        send_schedule(session, i + 1, large);
    return count * large.size();
}

std::size_t take_regions(Session& session) {
    constexpr std::uint64_t bytes = 4096, begin = std::uint64_t{1} << 40;
    const FileDescriptor file(memfd_create("stranger", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    expect(file && ftruncate(file.get(), bytes) == 0 &&
               fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0,
           "a file");
    for (std::size_t i = 0; i < max_regions; ++i) {
        const int descriptors[] = {file.get()};
        const control::RegisterRegion request{i + 1, begin + i * bytes, bytes};
        expect(session.socket().send(request, descriptors) == Status::ok, "a region");
        control::Message message;
        std::vector<FileDescriptor> none;
        std::string problem;
        expect(session.socket().receive(8000, message, none, problem) == Status::ok,
               "an answer about a region");
        const auto* reply = std::get_if<control::RegionReply>(&message);
        expect(reply != nullptr && reply->status == Status::ok, "a region");
    }
    return max_regions;
}

// Receives that no message meets. One slot is left for the last question.
std::size_t take_operations(Session& session) {
    static std::uint64_t word = 0;
    for (std::uint32_t slot = 1; slot < max_operations; ++slot) {
        control::BasicRecv command;
        command.team = first_team;
        command.tag = slot;
        command.completion = slot;
        command.range = {0, reinterpret_cast<std::uint64_t>(&word), sizeof word};
        expect(session.post(command), "a receive");
    }
    return max_operations - 1;
}

}  // namespace

void GreedySessions::hold(const Target& target, const char* name, std::uint32_t job_ranks,
                          const std::function<std::size_t(Session&)>& take) {
    constexpr std::uint64_t first_job = 0xbad0;
    Session& session =
        *sessions_.emplace_back(std::make_unique<Session>(target, first_job + sessions_.size(), job_ranks));
    make_team(session, first_team, job_ranks);
    held_[name] = take(session);
    // The answer shows that everything before it was executed, and that the session is still there.
    make_window(session, UINT64_MAX);
    expect(!session.socket().peer_closed(), name);
}

void GreedySessions::fill(const Target& target) {
    hold(target, "teams", 1, take_teams);
    hold(target, "windows", 1, take_windows);
    hold(target, "ranks of teams", control::max_job_size, take_members);
    hold(target, "schedules", 1, take_schedules);
    hold(target, "bytes of schedules", 1, take_schedule_bytes);
    hold(target, "regions", 1, take_regions);
    hold(target, "operations in flight", 1, take_operations);
}

}  // namespace strangers
