// Encrypted connections: jobs work as without, both sides must want them, and what is not encrypted is
// refused.
#include "remote_fixture.h"

#include <cstdlib>

namespace offpath::test {
namespace {

class EncryptingDaemon : public Remote {
  protected:
    EncryptingDaemon() : Remote({"--encrypt"}) { setenv("OFFPATH_ENCRYPT", "1", 1); }  // of the ranks
    ~EncryptingDaemon() override { unsetenv("OFFPATH_ENCRYPT"); }
};

TEST_F(EncryptingDaemon, ServesJobs) {
    EXPECT_TRUE(all_right(4, directory.path(), [this](const Rank& me) {
        if (me.rank % 2 == 0) attach_to(daemon.address(), key);
        offpath_context_h context = me.init();
        gather_once(context, me);
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
    EXPECT_NE(daemon.log().find("encrypted ("), std::string::npos) << daemon.log();
}

TEST_F(EncryptingDaemon, RefusesWhoDoesNotEncrypt) {
    EXPECT_TRUE(all_right(1, directory.path(), here([](const Rank& me) {
                              unsetenv("OFFPATH_ENCRYPT");
                              require_words(failing_init(me, OFFPATH_ERR_ACCESS),
                                            {"the device encrypts", "--encrypt", "OFFPATH_ENCRYPT=1"});
                          })));
}

// A rank on this system speaks to its daemon by a socket that no network carries.
TEST_F(EncryptingDaemon, AsksNothingOfLocalRanks) {
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        unsetenv("OFFPATH_ENCRYPT");
        offpath_context_h context = me.init();
        gather_once(context, me);
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

TEST_F(Remote, RefusesWhoEncryptsAlone) {
    EXPECT_TRUE(all_right(1, directory.path(), here([](const Rank& me) {
                              setenv("OFFPATH_ENCRYPT", "1", 1);
                              require_words(failing_init(me, OFFPATH_ERR_ACCESS),
                                            {"the program encrypts", "OFFPATH_ENCRYPT=1", "--encrypt"});
                          })));
}

TEST_F(EncryptingDaemon, SaysWhichSettingsDoNotGoWithIt) {
    const auto refused = [&](const char* name, const char* value, std::initializer_list<std::string> words) {
        EXPECT_TRUE(all_right(1, directory.path(), here([&](const Rank& me) {
                                  setenv(name, value, 1);
                                  require_words(failing_init(me, OFFPATH_ERR_INVALID), words);
                              })));
    };
    refused("OFFPATH_LINK", "both", {"OFFPATH_LINK=both", "auto, tcp or ucx"});
    refused("OFFPATH_RINGS", "rma", {"OFFPATH_RINGS=rma", "auto or messages"});
    refused("OFFPATH_ENCRYPT", "perhaps", {"OFFPATH_ENCRYPT"});
}

}  // namespace
}  // namespace offpath::test
