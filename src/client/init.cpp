// offpath_init, offpath_finalize, and the queries about a context. All ranks take the steps of init together,
// whatever happened to one of them, so it succeeds on all ranks or on none.
#include "base/environment.h"
#include "base/log.h"
#include "client/caught.h"
#include "client/context.h"
#include "client/traced.h"
#include "memory/shareable.h"

#include <offpath/loss.h>

#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <unordered_set>

using namespace offpath;
using namespace offpath::client;

namespace {

constexpr int goodbye_timeout_ms = 2000;
constexpr std::uint64_t world_team_id = std::uint64_t{1} << 63;

// What every rank tells all others before it attaches. Ranks of another version read it too, so its size and
// the place of `version` stay as they are. Up to protocol version 16 the version was 0. Likewise, the Report
// keeps its size and the places of `status`, `node` and `problem`.
struct JobSeed {
    std::uint64_t high = 0, low = 0;
    std::uint32_t remote = 0, has_key = 0;
    std::uint64_t time : 48 = 0;  // seconds since 1970
    std::uint64_t version : 16 = protocol_version;
    control::Secret fabric{};
};

// What every rank reports to all others about its attachment.
struct Report {
    std::int32_t status = 0;
    std::uint32_t address_bytes = 0;
    std::uint64_t proxy = 0;
    std::uint32_t direct_bytes = 0, unused = 0;
    char node[64] = {};
    char problem[248] = {};
};

static_assert(sizeof(JobSeed) == 64 && sizeof(Report) == 336);

// Empty if the library of every rank speaks this library's version.
std::string other_version(const std::vector<JobSeed>& seeds) {
    const auto other = std::find_if(seeds.begin(), seeds.end(),
                                    [](const JobSeed& seed) { return seed.version != protocol_version; });
    if (other == seeds.end()) return {};
    const std::string theirs =
        other->version == 0 ? "16 or older" : std::to_string(std::uint64_t{other->version});
    return fmt::format(
        "the library of rank {} speaks protocol version {}, this one version {}: install one version of "
        "offpath on all nodes",
        other - seeds.begin(), theirs, protocol_version);
}

void copy_text(std::span<char> to, const std::string& from) {
    const std::size_t length = std::min(from.size(), to.size() - 1);
    std::memcpy(to.data(), from.data(), length);
    to[length] = '\0';
}

// The ranks also exchange the proxy's address. Where the proxy has a direct path, they add that path's
// address and the secret of this rank.
std::size_t stride_of(const Report& report) {
    return report.address_bytes + report.direct_bytes +
           (report.direct_bytes > 0 ? sizeof(control::Secret) : 0);
}

void put_addresses(const control::Welcome& welcome, std::span<std::byte> to) {
    auto at = std::copy(welcome.address.begin(), welcome.address.end(), to.begin());
    if (welcome.direct.empty()) return;
    at = std::copy(welcome.direct.begin(), welcome.direct.end(), at);
    std::copy(welcome.direct_secret.begin(), welcome.direct_secret.end(), at);
}

// Null if no direct path leads to another proxy.
std::unique_ptr<DirectPaths> make_direct_paths(const AttachOptions& options,
                                               const std::vector<Report>& reports,
                                               std::span<const std::byte> addresses, std::size_t stride) {
    std::vector<DirectPaths::Home> homes(reports.size());
    bool any = false;
    for (std::size_t rank = 0; rank < reports.size(); ++rank) {
        const Report& report = reports[rank];
        homes[rank].proxy = report.proxy;
        if (report.direct_bytes == 0) continue;
        const auto entry = addresses.subspan(rank * stride + report.address_bytes);
        homes[rank].address.assign(entry.begin(), entry.begin() + report.direct_bytes);
        std::copy_n(entry.begin() + report.direct_bytes, sizeof(control::Secret), homes[rank].secret.begin());
        any = any || report.proxy != reports[options.rank].proxy;
    }
    if (!any || options.remote()) return nullptr;
    return std::make_unique<DirectPaths>(options.job_high, options.job_low, options.rank, std::move(homes));
}

// Rank 0 reports for all: it names the first rank that failed, and how many others did.
Status judge(const Bootstrap& bootstrap, const std::vector<Report>& reports) {
    const auto bad = [](const Report& report) { return report.status != 0; };
    const auto first = std::find_if(reports.begin(), reports.end(), bad);
    if (first == reports.end()) return Status::ok;
    const auto others = std::count_if(reports.begin(), reports.end(), bad) - 1;
    if (bootstrap.rank() == 0) {
        const bool releases = first->status == to_c(Status::version);
        log::error(releases ? Code::other_release : Code::no_device,
                   "rank {} on node {} is without a device: {}{}", first - reports.begin(), first->node,
                   first->problem, others > 0 ? fmt::format(" ({} more ranks too)", others) : "");
    }
    return static_cast<Status>(first->status);
}

// Tells the proxy which proxy serves each rank of the job.
Status announce(offpath_context& context, const std::vector<Report>& reports,
                std::span<const std::byte> addresses, std::size_t stride) {
    std::unordered_set<std::uint64_t> known;
    std::vector<std::uint64_t> proxies;
    for (std::size_t rank = 0; rank < reports.size(); ++rank) {
        proxies.push_back(reports[rank].proxy);
        if (!known.insert(reports[rank].proxy).second) continue;
        const control::AddProxy command{reports[rank].proxy,
                                        addresses.subspan(rank * stride, reports[rank].address_bytes)};
        if (Status status = context.post(command); status != Status::ok) return status;
    }
    constexpr std::size_t most = control::max_part_bytes / sizeof(std::uint64_t);
    for (std::size_t first = 0; first < proxies.size(); first += most) {
        const auto part =
            std::span<const std::uint64_t>(proxies).subspan(first, std::min(most, proxies.size() - first));
        if (Status status = context.post(control::Ranks{static_cast<std::uint32_t>(first), pack(part)});
            status != Status::ok)
            return status;
    }
    return Status::ok;
}

Status make_world(offpath_context& context) {
    std::vector<std::uint32_t> ranks(context.size);
    for (std::uint32_t i = 0; i < context.size; ++i)
        ranks[i] = i;
    return create_team(context, ranks, context.rank, world_team_id, &context.world);
}

// The first rank that has the key makes the job's secret for all ranks, so ranks on other nodes need no key.
// All ranks take this step together. Where every device is local, the secret that the first rank drew is
// enough.
Status agree_on_secret(Bootstrap& bootstrap, const std::vector<JobSeed>& seeds, const control::Key& key,
                       AttachOptions& options, bool& found) {
    const auto remote = [](const JobSeed& seed) { return seed.remote != 0; };
    found = false;
    options.fabric = seeds[0].fabric;
    if (std::none_of(seeds.begin(), seeds.end(), remote)) return Status::ok;
    const auto holder =
        std::find_if(seeds.begin(), seeds.end(), [](const JobSeed& seed) { return seed.has_key != 0; });
    if (holder == seeds.end()) return Status::ok;
    found = true;
    const auto rank = static_cast<std::size_t>(holder - seeds.begin());
    control::Secret mine{};
    std::vector<control::Secret> all;
    options.issued = holder->time;
    if (rank == bootstrap.rank())
        mine = control::job_secret(key, seeds[0].high, seeds[0].low, options.issued);
    const Status status = bootstrap.allgather(mine, all);
    if (status == Status::ok) {
        options.secret = all[rank];
        options.fabric = control::fabric_secret(options.secret);
    }
    control::wipe(mine);
    control::wipe(std::as_writable_bytes(std::span(all)));
    return status;
}

// What all ranks of a job want of their contexts.
struct Wanted {
    const char* directory = nullptr;
    bool threads = false;
    bool again = false;  // in place of a context that has ended
};

Status initialize(std::unique_ptr<Bootstrap> bootstrap, const Wanted& wanted, offpath_context** result) {
    std::string problem;
    Status status = Status::ok;
    AttachOptions options;
    std::uint64_t spin_us = 20;
    try {
        options = AttachOptions::from_environment(wanted.directory);
        spin_us = environment::number("OFFPATH_CLIENT_SPIN_US", spin_us);
        if (!wanted.again) open_trace(bootstrap->rank(), bootstrap->size());
    } catch (const std::invalid_argument& error) {
        status = Status::invalid;
        problem = error.what();
    }
    options.rank = bootstrap->rank();
    options.size = bootstrap->size();
    options.local_rank = bootstrap->local_rank();
    options.again = wanted.again;

    control::Key key;
    std::string key_problem = "OFFPATH_KEY_FILE is not set";
    Status key_status = Status::invalid;
    if (!options.key_file.empty()) key_status = control::read_key_file(options.key_file, key, key_problem);

    JobSeed mine;
    std::vector<JobSeed> seeds;
    std::uint64_t job[2];
    if (getrandom(job, sizeof job, 0) != sizeof job) return Status::system;
    mine = {job[0],
            job[1],
            options.remote(),
            !key.empty(),
            static_cast<std::uint64_t>(time(nullptr)),
            protocol_version,
            control::draw_secret()};
    bool secret_found = false;
    if (bootstrap->allgather(mine, seeds) != Status::ok ||
        agree_on_secret(*bootstrap, seeds, key, options, secret_found) != Status::ok) {
        log::error(Code::ranks_apart, "offpath_init: the bootstrap's allgather failed");
        return Status::unavailable;
    }
    options.job_high = seeds[0].high;
    options.job_low = seeds[0].low;
    for (JobSeed& seed : seeds)
        control::wipe(seed.fabric);
    control::wipe(mine.fabric);
    if (std::string other = other_version(seeds); status == Status::ok && !other.empty()) {
        status = Status::version;
        problem = std::move(other);
    }
    if (status == Status::ok && options.remote() && !secret_found) {
        status = key_status;
        problem = fmt::format("OFFPATH_DEVICES is set, but no rank has the devices' key: {}", key_problem);
    }

    Attachment attachment;
    if (status == Status::ok) status = attach(options, attachment, problem);
    control::wipe(options.secret);
    control::wipe(options.fabric);
    Report report;
    report.status = to_c(status);
    report.proxy = attachment.welcome.proxy;
    report.address_bytes = static_cast<std::uint32_t>(attachment.welcome.address.size());
    report.direct_bytes = static_cast<std::uint32_t>(attachment.welcome.direct.size());
    copy_text(report.node, status == Status::ok ? attachment.welcome.node : control::host_name());
    copy_text(report.problem, problem);
    std::vector<Report> reports;
    if (bootstrap->allgather(report, reports) != Status::ok) {
        log::error(Code::ranks_apart, "offpath_init: the bootstrap's allgather failed");
        return Status::unavailable;
    }
    if (Status verdict = judge(*bootstrap, reports); verdict != Status::ok) {
        // A rank that knows of the failure may end the job, so no rank returns before rank 0 has logged it.
        std::vector<char> said;
        (void)bootstrap->allgather('\1', said);
        return verdict;
    }

    std::size_t stride = 1;
    for (const Report& other : reports)
        stride = std::max(stride, stride_of(other));
    std::vector<std::byte> address(stride), addresses(stride * reports.size());
    put_addresses(attachment.welcome, address);
    if (bootstrap->allgather(std::span<const std::byte>(address), std::span<std::byte>(addresses)) !=
        Status::ok) {
        log::error(Code::ranks_apart, "offpath_init: the bootstrap's allgather failed");
        return Status::unavailable;
    }
    control::wipe(address);
    bootstrap->end_exchanges();

    auto context = std::make_unique<offpath_context>(std::move(attachment), wanted.threads, spin_us);
    context->rank = options.rank;
    context->size = options.size;
    context->directory = options.directory;
    context->all_local =
        std::none_of(seeds.begin(), seeds.end(), [](const JobSeed& seed) { return seed.remote != 0; });
    context->bootstrap = std::move(bootstrap);
    if (environment::flag("OFFPATH_DIRECT", true))
        context->direct = make_direct_paths(options, reports, addresses, stride);
    status = announce(*context, reports, addresses, stride);
    control::wipe(addresses);
    if (status == Status::ok) status = make_world(*context);
    if (status != Status::ok) {
        log::error(Code::no_device, "offpath_init: rank {} cannot make the team of all ranks: {}",
                   context->rank, to_string(status));
        return status;
    }
    context->ring();
    *result = context.release();
    return Status::ok;
}

}  // namespace

extern "C" {

offpath_status_t offpath_init(const offpath_init_params_t* params, offpath_context_h* context) {
    if (params == nullptr || context == nullptr) return OFFPATH_ERR_INVALID;
    if (params->struct_size != sizeof *params) {
        log::error(Code::arguments, "offpath_init: struct_size is {}; this library accepts {}",
                   params->struct_size, sizeof *params);
        return OFFPATH_ERR_INVALID;
    }
    try {
        std::unique_ptr<Bootstrap> bootstrap;
        std::string problem;
        if (Status status = make_bootstrap(*params, bootstrap, problem); status != Status::ok) {
            log::error(Code::no_device, "offpath_init: {}", problem);
            return to_c(status);
        }
        const Wanted wanted{params->directory, params->threads == OFFPATH_THREADS_MULTIPLE};
        return to_c(initialize(std::move(bootstrap), wanted, context));
    } catch (const std::bad_alloc&) {
        log::error(Code::resources, "offpath_init: out of memory");
        return OFFPATH_ERR_MEMORY;
    } catch (const std::exception& error) {
        log::error(Code::resources, "offpath_init: {}", error.what());
        return OFFPATH_ERR_SYSTEM;
    }
}

offpath_status_t offpath_finalize(offpath_context_h context) {
    if (context == nullptr) return OFFPATH_ERR_INVALID;
    context->sleep_until([&] { return context->requests.sweep() == 0; });
    if (context->attachment.line->texts() != nullptr && !context->lost())
        (void)context->ask_for_kernel_texts();
    // The daemon hangs up once it has released our memory.
    if (!context->lost() && context->attachment.line->send(control::Goodbye{}) == Status::ok)
        context->attachment.line->wait_closed(goodbye_timeout_ms);
    // Regions that were not ended.
    for (const auto& [region, owned] : context->regions)
        if (region->exported != 0 && context->attachment.exports == nullptr)
            memory::shareable::forget(reinterpret_cast<const void*>(region->begin));
    context->attachment.exports.reset();  // before the memory
    delete context;
    return OFFPATH_OK;
}

offpath_status_t offpath_context_end_session(offpath_context_h context) {
    return context == nullptr ? OFFPATH_ERR_INVALID : to_c(context->end_session(goodbye_timeout_ms));
}

offpath_status_t offpath_context_attach_again(offpath_context_h* context, std::uint64_t limit_ns) try {
    if (context == nullptr || *context == nullptr) return OFFPATH_ERR_INVALID;
    std::unique_ptr<Bootstrap> bootstrap = std::move((*context)->bootstrap);
    const std::string directory = (*context)->directory;
    const Wanted wanted{directory.c_str(), (*context)->threads(), true};
    offpath_finalize(std::exchange(*context, nullptr));
    if (bootstrap == nullptr) return OFFPATH_ERR_INVALID;
    std::string problem;
    const std::uint32_t rank = bootstrap->rank();
    if (Status status = bootstrap->meet_again(std::chrono::nanoseconds(limit_ns), problem);
        status != Status::ok) {
        log::error(Code::ranks_apart, "rank {} cannot attach again: {}", rank, problem);
        return to_c(status);
    }
    return to_c(initialize(std::move(bootstrap), wanted, context));
} catch (...) {
    return caught("offpath_context_attach_again");
}

offpath_status_t offpath_context_leave_launcher(offpath_context_h context) {
    if (context == nullptr) return OFFPATH_ERR_INVALID;
    context->bootstrap.reset();
    return OFFPATH_OK;
}

offpath_status_t offpath_context_share(offpath_context_h context, int on) {
    if (context == nullptr) return OFFPATH_ERR_INVALID;
    context->share(on != 0);
    return OFFPATH_OK;
}

offpath_status_t offpath_context_query(offpath_context_h context, offpath_context_info_t* info) {
    if (context == nullptr || info == nullptr || info->struct_size != sizeof *info)
        return OFFPATH_ERR_INVALID;
    const control::Welcome& welcome = context->attachment.welcome;
    info->rank = context->rank;
    info->size = context->size;
    info->default_back_end = static_cast<offpath_back_end_t>(welcome.back_end);
    info->default_progress = static_cast<offpath_progress_t>(welcome.progress);
    info->proxy = welcome.proxy_index;
    copy_text(info->node, welcome.node);
    copy_text(info->fabric, welcome.fabric);
    const auto& link = context->attachment.link;
    copy_text(info->completions, link == nullptr ? "shared memory" : link->rings());
    return OFFPATH_OK;
}

offpath_status_t offpath_context_counters(offpath_context_h context, offpath_context_counters_t* counters) {
    // A program that was built with an earlier version has no own_bytes.
    constexpr std::size_t earlier = offsetof(offpath_context_counters_t, own_bytes);
    if (context == nullptr || counters == nullptr ||
        (counters->struct_size != sizeof *counters && counters->struct_size != earlier))
        return OFFPATH_ERR_INVALID;
    auto guard = context->lock();
    context->requests.sweep();
    counters->operations = context->operations;
    counters->direct = context->direct_operations;
    counters->completed = context->requests.completed();
    counters->failed = context->requests.failed();
    counters->bytes = context->bytes;
    counters->schedules_built = context->schedules.built();
    counters->doorbells = context->doorbells;
    counters->agent_cpu_ns = counters->agent_bytes = 0;
    if (const auto& link = context->attachment.link; link != nullptr) {
        const link::HostLinkCounters served = link->counters();
        counters->agent_cpu_ns = static_cast<std::uint64_t>(served.agent_cpu_s * 1e9);
        counters->agent_bytes = served.bytes_to_device + served.bytes_to_host;
    }
    if (counters->struct_size != earlier) counters->own_bytes = context->requests.copied();
    return OFFPATH_OK;
}

offpath_status_t offpath_context_copies(offpath_context_h context, offpath_copies_t* copies) try {
    if (context == nullptr || copies == nullptr) return OFFPATH_ERR_INVALID;
    control::CopiesAsked answer;
    const Status status = context->ask(answer);
    if (status == Status::ok) *copies = {answer.direct, answer.once, answer.more};
    return to_c(status);
} catch (...) {
    return caught("offpath_context_copies");
}
}
