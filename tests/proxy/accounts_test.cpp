// As whose users the code of other systems' programs runs.
#include "proxy/accounts.h"

#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

namespace offpath::proxy {
namespace {

std::shared_ptr<Accounts> accounts_of(const std::string& text) {
    std::shared_ptr<Accounts> accounts;
    std::string problem;
    EXPECT_EQ(Accounts::parse(text, accounts, problem), Status::ok) << problem;
    return accounts;
}

TEST(Accounts, OfARangeAreOneForEachJob) {
    const auto accounts = accounts_of("60000-60001");
    auto one = accounts->of_job({1, 0}), again = accounts->of_job({1, 0}), two = accounts->of_job({2, 0});
    EXPECT_EQ(*one, "60000:60000");
    EXPECT_EQ(*again, *one);
    EXPECT_EQ(*two, "60001:60001");
    EXPECT_EQ(accounts->of_job({3, 0}), nullptr) << "never shared";
    kernel_host::HostConfig config;
    std::string why;
    EXPECT_FALSE(take_account(accounts.get(), {3, 0}, config, why));
    EXPECT_EQ(why, "other jobs have all accounts of --kernel-user");
    one.reset();
    EXPECT_EQ(accounts->of_job({3, 0}), nullptr) << "the first job still has a copy";
    again.reset();
    EXPECT_EQ(*accounts->of_job({3, 0}), "60000:60000");
}

TEST(Accounts, AreUsedAgainAsLateAsPossible) {
    const auto accounts = accounts_of("60000-60002");
    EXPECT_EQ(*accounts->of_job({1, 0}), "60000:60000");
    EXPECT_EQ(*accounts->of_job({2, 0}), "60001:60001");
    EXPECT_EQ(*accounts->of_job({3, 0}), "60002:60002");
    EXPECT_EQ(*accounts->of_job({4, 0}), "60000:60000");
}

TEST(Accounts, OfAUserAreTheSameForAllJobs) {
    const passwd* const nobody = getpwnam("nobody");
    if (nobody == nullptr) GTEST_SKIP() << "there is no user nobody";
    const uid_t user = nobody->pw_uid;
    const auto accounts = accounts_of("nobody");
    const auto one = accounts->of_job({1, 0});
    EXPECT_TRUE(one->starts_with(std::to_string(user) + ":"));
    EXPECT_EQ(*accounts->of_job({2, 0}), *one);
    EXPECT_TRUE(accounts->contains(user));
    EXPECT_FALSE(accounts->contains(user - 1));
}

TEST(Accounts, ThatAreNoneAreRefused) {
    for (const char* text :
         {"", "root", "0-5", "7-6", "60000-", "-60000", "1-70000", "no-such-user", "4294967295-4294967295"}) {
        std::shared_ptr<Accounts> accounts;
        std::string problem;
        EXPECT_EQ(Accounts::parse(text, accounts, problem), Status::invalid) << text;
        EXPECT_FALSE(problem.empty());
    }
}

}  // namespace
}  // namespace offpath::proxy
