// Accounts: the users as whom a daemon with the right to become them runs code of programs on other systems.
// It is one for all, or one for each job from a range of user numbers, so that jobs can neither signal nor
// read each other. A number that is free is used again as late as possible: its last job may have left files.
//
// Threads: any.
#pragma once

#include "base/status.h"
#include "engine/engine.h"
#include "kernel_host/host_process.h"

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <sys/types.h>

namespace offpath::proxy {

class Accounts : public std::enable_shared_from_this<Accounts> {
  public:
    static constexpr unsigned max_accounts = 65536;

    // `text`: a user's name, or FIRST-LAST, numbers of users from 1 on, each with the group of the same
    // number. invalid, with `problem`.
    static Status parse(const std::string& text, std::shared_ptr<Accounts>& accounts, std::string& problem);

    // UID:GID of the job's account, which is its own until the last copy is gone. Null: other jobs have all.
    std::shared_ptr<const std::string> of_job(const engine::JobId& job);
    // Whether the user is one of the accounts.
    bool contains(uid_t user) const { return user >= first_ && user <= last_; }

  private:
    void give_back(const engine::JobId& job, uid_t user);

    uid_t first_ = 0, last_ = 0;
    std::shared_ptr<const std::string> one_;  // for all jobs
    std::mutex mutex_;
    std::list<uid_t> free_;  // the longest unused first
    std::map<engine::JobId, std::weak_ptr<const std::string>> taken_;
};

// Sets the job's account in `config`; without accounts it stays. False: other jobs have all, as `why` says.
bool take_account(Accounts* accounts, const engine::JobId& job, kernel_host::HostConfig& config,
                  std::string& why);

}  // namespace offpath::proxy
