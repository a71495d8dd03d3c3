// Payload that is discarded inside the handler of its message. Some of UCX's transports say only after the
// handler how the message is to be released, so UCX must not be asked to release it before.
#include "conformance_fixture.h"

#include <dlfcn.h>

namespace {

bool inside_handler = false;
int released_inside = 0, released_after = 0;

}  // namespace

// In the place of UCX's own, which it calls.
extern "C" void ucp_am_data_release(void* worker, void* data) {
    ++(inside_handler ? released_inside : released_after);
    reinterpret_cast<decltype(&ucp_am_data_release)>(dlsym(RTLD_NEXT, "ucp_am_data_release"))(worker, data);
}

namespace offpath::transport::test {
namespace {

TEST(UcxDiscard, ReleasesNothingInsideTheHandler) {
    UcxWorld world("tcp,self");
    const auto a = world.make(), b = world.make();
    Recorder at_a, at_b;
    a->set_handler(&at_a);
    b->set_handler(&at_b);
    Endpoint* to_b = nullptr;
    ASSERT_EQ(a->connect(b->address(), &to_b), Status::ok);
    at_b.then = [&](const Incoming& message) {
        inside_handler = true;
        b->discard(message.rendezvous);
        inside_handler = false;
    };
    const auto payload = make_payload(1, 1 << 20);
    Counted sent[3];
    for (Counted& each : sent)
        each.start(a->send(*to_b, Header{1, 0}.view(), payload.data(), payload.size(), &each));
    ASSERT_TRUE(pump(
        {a.get(), b.get()}, [&] { return sent[0].done() && sent[1].done() && sent[2].done(); }, 30s));
    EXPECT_EQ(released_inside + released_after, 0);
    at_b.then = nullptr;
    Counted last;
    last.start(a->send(*to_b, Header{2, 0}.view(), payload.data(), payload.size(), &last));
    ASSERT_TRUE(pump(
        {a.get(), b.get()}, [&] { return at_b.messages.size() == 4; }, 30s));
    b->discard(at_b.messages.back().rendezvous);
    EXPECT_EQ(released_after, 1);
    ASSERT_TRUE(pump(
        {a.get(), b.get()}, [&] { return last.done(); }, 30s));
}

}  // namespace
}  // namespace offpath::transport::test
