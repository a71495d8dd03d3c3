#include "client/bootstrap.h"

#include "control/messages.h"

#include <fmt/format.h>

namespace offpath::client {
namespace {

class CallbackBootstrap final : public Bootstrap {
  public:
    explicit CallbackBootstrap(const offpath_init_params_t& params)
        : function_(params.allgather), user_(params.allgather_user) {
        rank_ = params.rank;
        size_ = params.size;
        local_rank_ = params.local_rank;
    }
    Status allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
        return function_(user_, mine.data(), mine.size(), all.data()) == 0 ? Status::ok : Status::system;
    }

  private:
    offpath_allgather_fn function_;
    void* user_;
};

}  // namespace

Status make_bootstrap(const offpath_init_params_t& params, std::unique_ptr<Bootstrap>& bootstrap,
                      std::string& problem) {
    if (params.allgather == nullptr) return make_pmix_bootstrap(bootstrap, problem);
    if (params.size == 0 || params.size > control::max_job_size || params.rank >= params.size) {
        problem =
            fmt::format("rank {} of {} ranks: 1 to {} ranks are accepted, and a rank below their number",
                        params.rank, params.size, control::max_job_size);
        return Status::invalid;
    }
    bootstrap = std::make_unique<CallbackBootstrap>(params);
    return Status::ok;
}

}  // namespace offpath::client
