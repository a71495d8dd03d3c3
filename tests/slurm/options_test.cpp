#include "slurm/options.h"

#include <gtest/gtest.h>

#include <string>

namespace {

struct Parsed {
    offpath_step_options_t options;
    bool good;
    std::string problem;
};

Parsed parsed(const char* text) {
    Parsed result{};
    char problem[256] = "";
    offpath_step_options_init(&result.options);
    result.good = offpath_step_options_parse(text, &result.options, problem, sizeof problem);
    result.problem = problem;
    return result;
}

TEST(SlurmOptions, NobodySaysAnything) {
    offpath_step_options_t options;
    offpath_step_options_init(&options);
    EXPECT_FALSE(options.on);
    EXPECT_EQ(options.cores, 1u);
    EXPECT_EQ(options.mpi, OFFPATH_MPI_UNKNOWN);
    EXPECT_STREQ(options.dir, "/tmp");
}

TEST(SlurmOptions, WordsAreRead) {
    EXPECT_TRUE(parsed("").options.on);
    EXPECT_TRUE(parsed("on").options.on);
    EXPECT_FALSE(parsed("off").options.on);
    const Parsed both = parsed("cores=3,mpi=mpich");
    EXPECT_TRUE(both.good && both.options.on);
    EXPECT_EQ(both.options.cores, 3u);
    EXPECT_EQ(both.options.mpi, OFFPATH_MPI_MPICH);
}

TEST(SlurmOptions, OtherWordsAreNamedAndChangeNothing) {
    for (const char* wrong : {"yes", "cores=0", "cores=many", "cores=257", "mpi=other", "dir=/tmp"}) {
        const Parsed result = parsed(wrong);
        EXPECT_FALSE(result.good) << wrong;
        EXPECT_FALSE(result.options.on) << wrong;
        EXPECT_NE(result.problem.find(std::string(wrong) + " is not known"), std::string::npos)
            << result.problem;
    }
}

TEST(SlurmOptions, OnlyTheAdministratorNamesTheDirectory) {
    offpath_step_options_t options;
    char problem[256] = "";
    offpath_step_options_init(&options);
    EXPECT_TRUE(offpath_step_options_argument("dir=/var/run/offpath", &options, problem, sizeof problem));
    EXPECT_STREQ(options.dir, "/var/run/offpath");
    EXPECT_TRUE(offpath_step_options_argument("on", &options, problem, sizeof problem));
    EXPECT_TRUE(options.on);
    EXPECT_FALSE(offpath_step_options_argument("dir=here", &options, problem, sizeof problem));
    EXPECT_FALSE(offpath_step_options_argument("cores", &options, problem, sizeof problem));
    EXPECT_NE(std::string(problem).find("plugstack.conf"), std::string::npos);
}

}  // namespace
