#include "slurm/claims.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdio>
#include <string>

#include "cpu_lists.h"

namespace {

// The tests of other runs have other processes, and so other jobs.
const auto job = static_cast<uint32_t>(getpid());

std::string claimed(offpath_claim_t kind, uint32_t by = job) {
    cpu_set_t cpus;
    std::FILE* const list = std::fopen("/proc/net/unix", "re");
    offpath_claims_read(list, by, kind, &cpus);
    std::fclose(list);
    return text_of(cpus);
}

int claim(uint32_t step, offpath_claim_t kind, const char* cpus) {
    const cpu_set_t set = set_of(cpus);
    return offpath_claim(job, step, kind, &set);
}

TEST(SlurmClaims, AClaimIsSeenUntilItsDescriptorIsClosed) {
    const int first = claim(0, OFFPATH_CLAIM_TASKS, "0-2");
    const int second = claim(1, OFFPATH_CLAIM_TASKS, "3,5");
    const int device = claim(1, OFFPATH_CLAIM_DEVICE, "7");
    EXPECT_EQ(claimed(OFFPATH_CLAIM_TASKS), "0-3,5");
    EXPECT_EQ(claimed(OFFPATH_CLAIM_DEVICE), "7");
    EXPECT_EQ(claimed(OFFPATH_CLAIM_DEVICE, job + 1), "");
    close(first);
    EXPECT_EQ(claimed(OFFPATH_CLAIM_TASKS), "3,5");
    close(second);
    close(device);
    EXPECT_EQ(claimed(OFFPATH_CLAIM_TASKS) + claimed(OFFPATH_CLAIM_DEVICE), "");
}

TEST(SlurmClaims, AListThatIsTooLongIsNotClaimed) {
    std::string every_second = "0";
    for (int i = 2; i < 200; i += 2)
        every_second += "," + std::to_string(i);
    EXPECT_EQ(claim(0, OFFPATH_CLAIM_TASKS, every_second.c_str()), -1);
}

TEST(SlurmClaims, OneStepHasTheLock) {
    const int lock = offpath_claims_lock(job, 0);
    ASSERT_GE(lock, 0);
    EXPECT_EQ(offpath_claims_lock(job, 10), -1);
    close(lock);
    const int next = offpath_claims_lock(job, 0);
    EXPECT_GE(next, 0);
    close(next);
}

TEST(SlurmClaims, OtherNamesAreLeftOut) {
    char list[] =
        "0: 00000002 00000000 00000000 0002 01 1 @offpath-slurm/7/lock\n"
        "0: 00000002 00000000 00000000 0002 01 2 @offpath-slurm/7/0/tasks/x\n"
        "0: 00000002 00000000 00000000 0002 01 3 @offpath-slurm/77/0/tasks/3\n"
        "0: 00000002 00000000 00000000 0002 01 4 /tmp/offpath-slurm/7/0/tasks/4\n"
        "0: 00000002 00000000 00000000 0002 01 5 @offpath-slurm/7/0/tasks/5\n";
    std::FILE* const file = fmemopen(list, sizeof list - 1, "r");
    cpu_set_t cpus;
    offpath_claims_read(file, 7, OFFPATH_CLAIM_TASKS, &cpus);
    std::fclose(file);
    EXPECT_EQ(text_of(cpus), "5");
}

}  // namespace
