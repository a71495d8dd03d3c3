#include "proxy/accounts.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <utility>

#include <pwd.h>

namespace offpath::proxy {
namespace {

std::optional<uid_t> number(std::string_view text) {
    uid_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return {};
    return value;
}

}  // namespace

Status Accounts::parse(const std::string& text, std::shared_ptr<Accounts>& accounts, std::string& problem) {
    const auto made = std::make_shared<Accounts>();
    const std::size_t dash = text.find('-');
    const std::optional<uid_t> first = number(std::string_view(text).substr(0, dash));
    const std::optional<uid_t> last =
        dash == std::string::npos ? std::nullopt : number(std::string_view(text).substr(dash + 1));
    if (first.has_value() && last.has_value()) {
        if (*first == 0 || *last < *first || *last - *first >= max_accounts ||
            *last == static_cast<uid_t>(-1)) {
            problem = fmt::format(
                "{}: FIRST-LAST are at most {} numbers of users, from 1 on: kernels never "
                "run as root",
                text, max_accounts);
            return Status::invalid;
        }
        made->first_ = *first;
        made->last_ = *last;
        for (uid_t user = *first; user <= *last; ++user)
            made->free_.push_back(user);
        accounts = made;
        return Status::ok;
    }
    const passwd* const entry = getpwnam(text.c_str());
    if (entry == nullptr || entry->pw_uid == 0) {
        problem =
            fmt::format("{}: {}", text,
                        entry == nullptr ? "there is no such user; a user's name or FIRST-LAST is accepted"
                                         : "kernels never run as root");
        return Status::invalid;
    }
    made->first_ = made->last_ = entry->pw_uid;
    made->one_ = std::make_shared<const std::string>(fmt::format("{}:{}", entry->pw_uid, entry->pw_gid));
    accounts = made;
    return Status::ok;
}

std::shared_ptr<const std::string> Accounts::of_job(const engine::JobId& job) {
    if (one_ != nullptr) return one_;
    const std::lock_guard lock(mutex_);
    if (const auto found = taken_.find(job); found != taken_.end())
        if (auto account = found->second.lock(); account != nullptr) return account;
    if (free_.empty()) return nullptr;
    const uid_t user = free_.front();
    free_.pop_front();
    std::shared_ptr<const std::string> account(
        new std::string(fmt::format("{}:{}", user, user)),
        [self = shared_from_this(), job, user](const std::string* text) {
            delete text;
            self->give_back(job, user);
        });
    taken_[job] = account;
    return account;
}

bool take_account(Accounts* accounts, const engine::JobId& job, kernel_host::HostConfig& config,
                  std::string& why) {
    if (accounts == nullptr) return true;
    config.user = accounts->of_job(job);
    if (config.user == nullptr) why = "other jobs have all accounts of --kernel-user";
    return config.user != nullptr;
}

// The job may have another one by now: between the end of the last copy and this call.
void Accounts::give_back(const engine::JobId& job, uid_t user) {
    const std::lock_guard lock(mutex_);
    free_.push_back(user);
    if (const auto found = taken_.find(job); found != taken_.end() && found->second.expired())
        taken_.erase(found);
}

}  // namespace offpath::proxy
