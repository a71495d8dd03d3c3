// Which transports a link is offered over.
#include "link/choice/passive_tls.h"
#include "link/choice/transport_choice.h"
#include "setting.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace offpath::link::test {
namespace {

TEST(Ways, OneThatIsMissingIsNamed) {
    const Setting both("OFFPATH_LINK", "both"), nothing("UCX_TLS", "nothing");
    std::unique_ptr<transport::Transport> transport;
    std::unique_ptr<transport::OneSided> one_sided;
    std::string problem;
    testing::internal::CaptureStderr();
    const Status status = make_host_transport("lo", transport, one_sided, problem);
    const std::string said = testing::internal::GetCapturedStderr();
    ASSERT_EQ(status, Status::ok) << problem;
    EXPECT_NE(said.find("not offered over UCX: "), std::string::npos) << said;
    EXPECT_EQ(said.find("plain TCP"), std::string::npos) << said;
}

TEST(Ways, ErrorsNameTheWayThatIsAskedFor) {
    const Setting ucx("OFFPATH_LINK", "ucx"), nothing("UCX_TLS", "nothing");
    std::unique_ptr<transport::Transport> transport;
    std::unique_ptr<transport::OneSided> one_sided;
    std::string problem;
    EXPECT_NE(make_host_transport("lo", transport, one_sided, problem), Status::ok);
    EXPECT_NE(problem.find("UCX"), std::string::npos) << problem;
    const Setting other("OFFPATH_LINK", "pigeon");
    EXPECT_EQ(make_host_transport("lo", transport, one_sided, problem), Status::invalid);
    EXPECT_NE(problem.find("pigeon"), std::string::npos) << problem;
}

TEST(PassiveTransports, DatagramsOnlyHelpReliableOnes) {
    EXPECT_EQ(passive_tls("rc_verbs,ud_verbs,self"), "rc_verbs,ud_verbs:aux");
    EXPECT_EQ(passive_tls("self,ud,rc_v,dc_x"), "ud_verbs:aux,ud_mlx5:aux,rc_v,dc_x");
    EXPECT_EQ(passive_tls("rc,ud,tcp"), "rc");  // UCX's short name brings its helpers
    EXPECT_EQ(passive_tls("dc_mlx5,ud_mlx5:aux"), "dc_mlx5,ud_mlx5:aux");
    EXPECT_EQ(passive_tls("ud_verbs,tcp,self"), "");
    EXPECT_EQ(passive_tls("sysv,tcp"), "sysv");
    EXPECT_EQ(passive_tls(""), "");
}

}  // namespace
}  // namespace offpath::link::test
