// Which ways a link is offered over.
#include "link/ways.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

namespace offpath::link::test {
namespace {

// Sets a variable of the environment until its end.
class Setting {
  public:
    Setting(const char* name, const char* value) : name_(name) {
        if (const char* before = std::getenv(name)) before_ = std::make_unique<std::string>(before);
        setenv(name, value, 1);
    }
    ~Setting() {
        if (before_ != nullptr)
            setenv(name_, before_->c_str(), 1);
        else
            unsetenv(name_);
    }
    Setting(const Setting&) = delete;
    Setting& operator=(const Setting&) = delete;

  private:
    const char* const name_;
    std::unique_ptr<std::string> before_;
};

TEST(Ways, OneThatIsMissingIsNamed) {
    const Setting both("OFFPATH_LINK", "both"), nothing("UCX_TLS", "nothing");
    std::unique_ptr<transport::Transport> transport;
    std::string problem;
    testing::internal::CaptureStderr();
    const Status status = make_host_transport("lo", transport, problem);
    const std::string said = testing::internal::GetCapturedStderr();
    ASSERT_EQ(status, Status::ok) << problem;
    EXPECT_NE(said.find("not offered over UCX: "), std::string::npos) << said;
    EXPECT_EQ(said.find("plain TCP"), std::string::npos) << said;
}

TEST(Ways, ErrorsNameTheWayThatIsAskedFor) {
    const Setting ucx("OFFPATH_LINK", "ucx"), nothing("UCX_TLS", "nothing");
    std::unique_ptr<transport::Transport> transport;
    std::string problem;
    EXPECT_NE(make_host_transport("lo", transport, problem), Status::ok);
    EXPECT_NE(problem.find("UCX"), std::string::npos) << problem;
    const Setting other("OFFPATH_LINK", "pigeon");
    EXPECT_EQ(make_host_transport("lo", transport, problem), Status::invalid);
    EXPECT_NE(problem.find("pigeon"), std::string::npos) << problem;
}

}  // namespace
}  // namespace offpath::link::test
