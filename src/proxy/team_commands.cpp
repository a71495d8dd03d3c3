// Session's execution of commands for the job's proxies, ranks and teams. Each command checks the client's
// values against what the client set up before.
#include "base/log.h"
#include "proxy/session.h"

#include <algorithm>

namespace offpath::proxy {
namespace {

constexpr std::size_t max_teams = 1 << 16;

}  // namespace

bool Session::execute(const control::AddProxy& command) {
    // If an address cannot be used, the teams that need it fail with their own message.
    if (Status status = engine_.add_proxy(*session_, command.proxy, command.address); status != Status::ok)
        log::error(Code::no_way, "{}: the address of proxy {:x} cannot be used: {}", name_, command.proxy,
                   to_string(status));
    return true;
}

bool Session::execute(const control::Ranks& command) {
    if (command.first + command.proxies.size() > proxies_.size()) {
        problem_ = fmt::format("ranks {} to {} of a job of {}", command.first,
                               command.first + command.proxies.size() - 1, proxies_.size());
        return false;
    }
    for (std::size_t i = 0; i < command.proxies.size(); ++i)
        proxies_[command.first + i] = command.proxies[i];
    return true;
}

bool Session::execute(const control::CreateTeam& command) {
    if (command.first == 0) {
        if (command.size > proxies_.size() || members_in_use_ + command.size > max_members) {
            problem_ =
                fmt::format("team {:x} has {} ranks; the job has {}, and all teams together may have {} more",
                            command.team, command.size, proxies_.size(), max_members - members_in_use_);
            return false;
        }
        team_draft_ = {command.team, command.rank, {}};
    }
    if (command.team != team_draft_.id || command.first != team_draft_.ranks.size() ||
        teams_.contains(command.team) || teams_.size() >= max_teams) {
        problem_ = fmt::format("team {:x} in the wrong order, or twice, or beyond the {} that are accepted",
                               command.team, max_teams);
        return false;
    }
    for (std::size_t i = 0; i < command.ranks.size(); ++i)
        team_draft_.ranks.push_back(command.ranks[i]);
    if (team_draft_.ranks.size() < command.size) return true;
    TeamEntry entry;
    entry.rank = command.rank;
    entry.size = command.size;
    make_team(command.team, entry);
    teams_.emplace(command.team, entry);
    ++teams_made_;
    members_in_use_ += entry.size;
    return true;
}

void Session::make_team(std::uint64_t id, TeamEntry& entry) {
    members_.clear();
    for (std::uint32_t rank : team_draft_.ranks) {
        const engine::ProxyId proxy = rank < proxies_.size() ? proxies_[rank] : 0;
        members_.push_back({proxy, rank});
    }
    entry.failure = engine_.create_team(*session_, id, entry.rank, members_, &entry.team);
    if (entry.failure == Status::ok) {
        if (teams_.empty()) engine_.greet(*session_);  // the first team is of all ranks
        return;
    }
    entry.team = nullptr;
    log::error(Code::limit, "{}: team {:x} of {} ranks cannot be made: {}", name_, id, entry.size,
               to_string(entry.failure));
}

bool Session::execute(const control::DestroyTeam& command) {
    TeamEntry* entry = find_team(command.team);
    if (entry == nullptr) return false;
    if (entry->team != nullptr) engine_.destroy_team(entry->team);
    members_in_use_ -= entry->size;
    teams_.erase(command.team);
    return true;
}

Session::TeamEntry* Session::find_team(std::uint64_t id) {
    const auto found = teams_.find(id);
    if (found != teams_.end()) return &found->second;
    problem_ = fmt::format("a command for team {:x}, which there is not", id);
    return nullptr;
}

}  // namespace offpath::proxy
