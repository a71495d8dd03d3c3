#include "core.h"

#include <new>

namespace offpath::shmem {

namespace {

struct TeamContext : Context {
    std::vector<int> members;
};

}  // namespace

Context world_context;

Context* create_context(long options, std::vector<int> pes, void* team) {
    auto* made = new (std::nothrow) TeamContext;
    if (made == nullptr) return nullptr;
    made->members = std::move(pes);
    made->world_pes = made->members.empty() ? nullptr : made->members.data();
    made->pes = made->members.empty() ? n_pes() : static_cast<int>(made->members.size());
    made->options = options;
    made->team = team;
    return made;
}

void fail_no_context() {
    fail("the context is SHMEM_CTX_INVALID");
}

void destroy_context(Context* context) {
    quiet(*context);
    delete static_cast<TeamContext*>(context);
}

}  // namespace offpath::shmem
