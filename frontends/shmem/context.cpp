#include "core.h"

#include <memory>
#include <mutex>
#include <new>

namespace offpath::shmem {

namespace {

struct TeamContext : Context {
    std::vector<int> members;
};

struct Destroyed {
    std::mutex mutex;
    std::vector<Context*> all{&world_context};
    std::vector<std::unique_ptr<TeamContext>> contexts;
};
Destroyed& destroyed() {
    static Destroyed instance;
    return instance;
}

TeamContext* take_destroyed() {
    const std::lock_guard lock(destroyed().mutex);
    if (destroyed().contexts.empty()) return nullptr;
    TeamContext* const context = destroyed().contexts.back().release();
    destroyed().contexts.pop_back();
    return context;
}

}  // namespace

Context world_context;

Context* create_context(long options, std::vector<int> pes, void* team, bool own) {
    TeamContext* made = take_destroyed();
    if (made == nullptr) {
        made = new (std::nothrow) TeamContext;
        if (made == nullptr) return nullptr;
        const std::lock_guard lock(destroyed().mutex);
        destroyed().all.push_back(made);
    }
    made->members = std::move(pes);
    made->world_pes = made->members.empty() ? nullptr : made->members.data();
    made->own = own;
    made->options = options;
    made->team = team;
    made->pes = made->members.empty() ? n_pes() : static_cast<int>(made->members.size());
    return made;
}

std::vector<Context*> all_contexts() {
    const std::lock_guard lock(destroyed().mutex);
    return destroyed().all;
}

void fail_no_context() {
    fail("the context is SHMEM_CTX_INVALID");
}

void destroy_context(Context* context) {
    quiet(*context);
    context->pes = 0;
    const std::lock_guard lock(destroyed().mutex);
    destroyed().contexts.emplace_back(static_cast<TeamContext*>(context));
}

}  // namespace offpath::shmem
