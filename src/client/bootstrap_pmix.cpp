// Bootstrap through PMIx, which mpirun, prterun and srun --mpi=pmix offer. The library is opened at run time,
// so that programs with their own bootstrap do not need it.
//
// Records travel over a tree of connections, whose addresses come from the server's data store. Fences would
// not do: if several programs run in turn under one launch, servers (at least Open MPI 4.1 with PMIx 4.2)
// miscount the processes of a fence, and keep counting processes that ended without leaving. Where the server
// has no store, the bootstrap falls back to fences.
#include "client/bootstrap.h"

#include "base/log.h"
#include "client/exchange_tree.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <pmix.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace offpath::client {
namespace {

struct Library {
    decltype(&PMIx_Init) init;
    decltype(&PMIx_Finalize) finalize;
    decltype(&PMIx_Put) put;
    decltype(&PMIx_Commit) commit;
    decltype(&PMIx_Fence) fence;
    decltype(&PMIx_Get) get;
    decltype(&PMIx_Publish) publish;
    decltype(&PMIx_Unpublish) unpublish;
    decltype(&PMIx_Lookup) lookup;
    decltype(&PMIx_Error_string) error_string;
};

template <typename Function>
bool find(void* handle, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    return function != nullptr;
}

bool load(Library& library, std::string& problem) {
    void* handle = dlopen("libpmix.so.2", RTLD_NOW | RTLD_GLOBAL);
    if (handle == nullptr) {
        problem = fmt::format("no PMIx library: {}", dlerror());
        return false;
    }
    if (find(handle, "PMIx_Init", library.init) && find(handle, "PMIx_Finalize", library.finalize) &&
        find(handle, "PMIx_Put", library.put) && find(handle, "PMIx_Commit", library.commit) &&
        find(handle, "PMIx_Fence", library.fence) && find(handle, "PMIx_Get", library.get) &&
        find(handle, "PMIx_Publish", library.publish) && find(handle, "PMIx_Unpublish", library.unpublish) &&
        find(handle, "PMIx_Lookup", library.lookup) &&
        find(handle, "PMIx_Error_string", library.error_string))
        return true;
    problem = "the PMIx library lacks calls of its standard";
    return false;
}

bool lacks(pmix_status_t status) {
    return status == PMIX_ERR_NOT_SUPPORTED || status == PMIX_ERR_NOT_IMPLEMENTED;
}

class PmixBootstrap final : public Bootstrap, private Board {
  public:
    Status open(std::string& problem) {
        if (!load(pmix_, problem)) return Status::unavailable;
        if (const pmix_status_t status = pmix_.init(&me_, nullptr, 0); status != PMIX_SUCCESS) {
            problem = fmt::format(
                "no PMIx server answers ({}); start the program with mpirun, or pass an "
                "allgather callback to offpath_init",
                pmix_.error_string(status));
            return Status::unavailable;
        }
        attached_ = true;
        rank_ = me_.rank;
        if (!number(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, size_) || rank_ >= size_) {
            problem = "the PMIx server does not tell the size of the job";
            return Status::unavailable;
        }
        // Without the local rank every rank of a node tries to start a daemon; the daemons agree on one.
        if (!number(me_.rank, PMIX_LOCAL_RANK, local_rank_)) local_rank_ = 0;
        return Status::ok;
    }
    // PMIx servers (up to 4.2 at least) answer before they note that the process has left. A process that
    // hangs up in between counts as dead, and the next program that a script starts then misses a rank in its
    // fences. So a thread of the lowest scheduling class hangs up: where cores are scarce, the server's
    // threads run before it.
    ~PmixBootstrap() override {
        if (!attached_) return;
        std::thread([this] {
            const sched_param none{};
            sched_setscheduler(0, SCHED_IDLE, &none);
            pmix_.finalize(nullptr, 0);
        }).join();
    }

    Status allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
        if (size_ == 1) {
            std::copy(mine.begin(), mine.end(), all.begin());
            return Status::ok;
        }
        if (!joined_) {
            joined_ = true;
            tree_ = std::make_unique<ExchangeTree>(static_cast<Board&>(*this), rank_, size_);
            std::string problem;
            const Status status = tree_->join(problem);
            has_board_ = status == Status::ok;
            if (status != Status::ok) tree_.reset();
            if (status != Status::ok && status != Status::unsupported) {
                log::error(Code::ranks_apart, "rank {} cannot meet the others: {}", rank_, problem);
                return status;
            }
        }
        return tree_ != nullptr ? tree_->allgather(mine, all) : allgather_by_fence(mine, all);
    }
    void end_exchanges() override { tree_.reset(); }
    Status meet_again(std::chrono::nanoseconds limit, std::string& problem) override {
        if (size_ == 1) return Status::ok;
        if (!has_board_) {
            problem = "the launcher's server has no data store";
            return Status::unsupported;
        }
        tree_ = std::make_unique<ExchangeTree>(static_cast<Board&>(*this), rank_, size_);
        const Status status = tree_->join(problem, limit);
        if (status != Status::ok) tree_.reset();
        return status;
    }

  private:
    Status allgather_by_fence(std::span<const std::byte> mine, std::span<std::byte> all) {
        const std::string key = fmt::format("offpath.{}", gathered_++);
        pmix_value_t value{};
        value.type = PMIX_BYTE_OBJECT;
        value.data.bo.bytes = const_cast<char*>(reinterpret_cast<const char*>(mine.data()));
        value.data.bo.size = mine.size();
        if (pmix_.put(PMIX_GLOBAL, key.c_str(), &value) != PMIX_SUCCESS || pmix_.commit() != PMIX_SUCCESS)
            return Status::system;
        pmix_info_t collect{};
        std::strncpy(collect.key, PMIX_COLLECT_DATA, PMIX_MAX_KEYLEN);
        collect.value.type = PMIX_BOOL;
        collect.value.data.flag = true;
        const pmix_proc_t everybody = process(PMIX_RANK_WILDCARD);
        if (pmix_.fence(&everybody, 1, &collect, 1) != PMIX_SUCCESS) return Status::system;
        for (std::uint32_t rank = 0; rank < size_; ++rank) {
            const pmix_proc_t whom = process(rank);
            pmix_value_t* found = nullptr;
            if (pmix_.get(&whom, key.c_str(), nullptr, 0, &found) != PMIX_SUCCESS) return Status::system;
            const bool fits = found->type == PMIX_BYTE_OBJECT && found->data.bo.size == mine.size();
            if (fits) std::memcpy(all.data() + rank * mine.size(), found->data.bo.bytes, mine.size());
            if (found->type == PMIX_BYTE_OBJECT) std::free(found->data.bo.bytes);
            std::free(found);
            if (!fits) return Status::system;
        }
        return Status::ok;
    }

    std::string board_key(std::uint32_t rank) const { return fmt::format("offpath.{}.{}", me_.nspace, rank); }
    Status publish(std::span<const std::byte> record) override {
        std::string key = board_key(rank_);
        char* keys[] = {key.data(), nullptr};
        if (lacks(pmix_.unpublish(keys, nullptr, 0))) return Status::unsupported;
        pmix_info_t info[2] = {};
        std::strncpy(info[0].key, key.c_str(), PMIX_MAX_KEYLEN);
        info[0].value.type = PMIX_BYTE_OBJECT;
        info[0].value.data.bo.bytes = const_cast<char*>(reinterpret_cast<const char*>(record.data()));
        info[0].value.data.bo.size = record.size();
        std::strncpy(info[1].key, PMIX_PERSISTENCE, PMIX_MAX_KEYLEN);
        info[1].value.type = PMIX_PERSIST;
        info[1].value.data.persist = PMIX_PERSIST_APP;
        const pmix_status_t status = pmix_.publish(info, 2);
        if (lacks(status)) return Status::unsupported;
        return status == PMIX_SUCCESS ? Status::ok : Status::system;
    }
    Status look_up(std::uint32_t rank, std::vector<std::byte>& record) override {
        pmix_pdata_t found{};
        std::strncpy(found.key, board_key(rank).c_str(), PMIX_MAX_KEYLEN);
        const pmix_status_t status = pmix_.lookup(&found, 1, nullptr, 0);
        if (lacks(status)) return Status::unsupported;
        if (status != PMIX_SUCCESS || found.value.type != PMIX_BYTE_OBJECT)
            return status == PMIX_SUCCESS || status == PMIX_ERR_NOT_FOUND ? Status::unavailable
                                                                          : Status::system;
        const auto* const bytes = reinterpret_cast<const std::byte*>(found.value.data.bo.bytes);
        record.assign(bytes, bytes + found.value.data.bo.size);
        std::free(found.value.data.bo.bytes);
        return Status::ok;
    }

    pmix_proc_t process(pmix_rank_t rank) const {
        pmix_proc_t result{};
        std::memcpy(result.nspace, me_.nspace, sizeof result.nspace);
        result.rank = rank;
        return result;
    }
    bool number(pmix_rank_t rank, const char* key, std::uint32_t& result) const {
        const pmix_proc_t whom = process(rank);
        pmix_value_t* found = nullptr;
        if (pmix_.get(&whom, key, nullptr, 0, &found) != PMIX_SUCCESS) return false;
        const bool known = found->type == PMIX_UINT32 || found->type == PMIX_UINT16;
        if (known) result = found->type == PMIX_UINT32 ? found->data.uint32 : found->data.uint16;
        std::free(found);
        return known;
    }

    Library pmix_{};
    pmix_proc_t me_{};
    bool attached_ = false, joined_ = false, has_board_ = false;
    std::unique_ptr<ExchangeTree> tree_;
    std::uint32_t gathered_ = 0;
};

}  // namespace

Status make_pmix_bootstrap(std::unique_ptr<Bootstrap>& bootstrap, std::string& problem) {
    auto made = std::make_unique<PmixBootstrap>();
    if (Status status = made->open(problem); status != Status::ok) return status;
    bootstrap = std::move(made);
    return Status::ok;
}

}  // namespace offpath::client
