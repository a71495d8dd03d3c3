#include "transport/ucx/tuning.h"

#include "base/patience.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <sstream>
#include <utility>

namespace offpath::transport::ucx {
namespace {

struct Tuned {
    const char* name;   // without "UCX_"
    const char* value;  // null: user_timeout()
    bool old = true;    // also for UCX before 1.17
};

constexpr Tuned tuned[] = {
    // A peer that vanishes without closing its connection must be noticed within seconds; UCX waits 20 s.
    {"KEEPALIVE_INTERVAL", "2s"},
    // The same if a link is cut and nothing closes the connection, when UCX would wait for minutes. A peer is
    // lost after 8 s without an answer, or after OFFPATH_LOST_AFTER_S (user_timeout()).
    {"TCP_USER_TIMEOUT", nullptr, false},
    {"TCP_KEEPIDLE", "2s"},
    {"TCP_KEEPINTVL", "1s"},
    {"TCP_KEEPCNT", "3"},
    // A connect to a node that does not answer would stop the proxy for minutes. UCX 1.13 misreads SYN_CNT.
    {"TCP_CONN_NB", "y"},
    {"TCP_SYN_CNT", "2", false},
    // The same on RDMA: with UCX's 7 tries, 1 s apart, operations end later than a peer is given up, and
    // soft-RoCE takes 7 for "for ever".
    {"RC_TIMEOUT", "500ms", false},
    {"RC_RETRY_COUNT", "5", false},
    // Where UCX_TLS allows daemons of one node shared memory: it supports error handling only on request.
    {"POSIX_ERROR_HANDLING", "y"},
    {"SYSV_ERROR_HANDLING", "y"},
    // With error handling, shared memory moves large payloads through its queue of 256 segments. With 8 KiB
    // each, four payloads of 512 KiB fill it and both sides spin: 0.33 GB/s and 1.5 s of CPU time per GB;
    // with 32 KiB, 3.2 GB/s and 0.12 s. UCX does not accept 64K.
    {"POSIX_SEG_SIZE", "32K"},
    {"SYSV_SEG_SIZE", "32K"},
    // Fewer system calls per byte. For 512 KiB rendezvous over veth, with both sides on one core, it took
    // 0.61 s of CPU time per GB. UCX's 8K and 64K took 0.71 s. (Medians of 5 alternating runs; 512K is no
    // better.)
    {"TCP_TX_SEG_SIZE", "256K"},
    {"TCP_RX_SEG_SIZE", "256K"},
};

// For memory that only the network card reaches: UCX's other ways would touch the bytes. The receiver's card
// reads. (The protocols that honour handles are optional before UCX 1.15.)
constexpr std::pair<const char*, const char*> network_memory[] = {
    {"PROTO_ENABLE", "y"}, {"RNDV_SCHEME", "get_zcopy"}, {"RNDV_THRESH", "0"}};

std::string user_timeout() {
    const std::uint64_t limit_ns = lost_after_ns();
    return limit_ns == UINT64_MAX ? "0" : fmt::format("{}s", limit_ns / 1'000'000'000);
}

// Before 1.17, ucp_config_modify() does not accept the settings of a single transport.
bool takes_transport_settings() {
    unsigned major = 0, minor = 0, release = 0;
    ucp_get_version(&major, &minor, &release);
    return std::pair(major, minor) >= std::pair(1u, 17u);
}

// For these versions the environment is the only way. Runs once, at the first transport of the process.
void tune_by_environment() {
    static std::once_flag once;
    std::call_once(once, [] {
        for (const Tuned& setting : tuned)
            if (setting.old) setenv(fmt::format("UCX_{}", setting.name).c_str(), setting.value, 0);
    });
}

std::string in_force(const std::string& asked, const char* variable) {
    if (!asked.empty()) return asked;
    const char* value = std::getenv(variable);
    return value ? value : "all";
}

}  // namespace

Config read_config(const UcxConfig& config, std::string& problem) {
    if (!takes_transport_settings()) tune_by_environment();
    ucp_config_t* raw = nullptr;
    if (ucs_status_t status = ucp_config_read(nullptr, nullptr, &raw); status != UCS_OK) {
        problem = fmt::format("UCX cannot read its configuration: {}", ucs_status_string(status));
        return nullptr;
    }
    Config result(raw);
    for (const Tuned& setting : tuned) {
        if (std::getenv(fmt::format("UCX_{}", setting.name).c_str())) continue;
        // A UCX that does not know a name keeps its default.
        const std::string value = setting.value != nullptr ? setting.value : user_timeout();
        if (takes_transport_settings()) (void)ucp_config_modify(raw, setting.name, value.c_str());
    }
    for (const auto& [name, value] : network_memory) {
        if (config.imports == MemorySource::none || std::getenv(fmt::format("UCX_{}", name).c_str()))
            continue;
        (void)ucp_config_modify(raw, name, value);
    }
    const std::pair<const char*, const std::string&> asked[] = {{"NET_DEVICES", config.net_devices},
                                                                {"TLS", config.tls}};
    for (const auto& [name, value] : asked) {
        if (value.empty()) continue;
        if (ucs_status_t status = ucp_config_modify(raw, name, value.c_str()); status != UCS_OK) {
            problem = fmt::format("UCX does not accept {}={}: {}", name, value, ucs_status_string(status));
            return nullptr;
        }
    }
    return result;
}

namespace {

// The program may have loaded another UCX, as MPICH does. Different releases cannot communicate over a
// connection.
bool is_the_one_built_with(std::string& problem) {
    unsigned major = 0;
    unsigned minor = 0;
    unsigned release = 0;
    ucp_get_version(&major, &minor, &release);
    if (major == UCP_API_MAJOR && minor == UCP_API_MINOR) return true;
    problem = fmt::format("this process has loaded UCX {}.{} before, and offpath is built with {}.{}", major,
                          minor, UCP_API_MAJOR, UCP_API_MINOR);
    return false;
}

}  // namespace

Context open_context(const UcxConfig& config, unsigned long features, std::string& problem) {
    if (!is_the_one_built_with(problem)) return nullptr;
    const Config settings = read_config(config, problem);
    if (!settings) return nullptr;
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
    params.features = features;
    params.name = "offpath";
    ucp_context_h context = nullptr;
    if (ucs_status_t status = ucp_init(&params, settings.get(), &context); status != UCS_OK) {
        problem = fmt::format("UCX finds nothing to communicate with ({}): {}", choice_of(config),
                              ucs_status_string(status));
        return nullptr;
    }
    return Context(context);
}

std::vector<std::string> resources_of(ucp_context_h context) {
    char* text = nullptr;
    std::size_t bytes = 0;
    std::FILE* file = open_memstream(&text, &bytes);
    if (!file) return {};
    ucp_context_print_info(context, file);
    std::fclose(file);
    // Lines of the form "#   resource 0 : md 0 dev 0 flags -- tcp/eth0".
    std::vector<std::string> resources;
    std::istringstream lines(std::string(text, bytes));
    std::free(text);
    for (std::string line; std::getline(lines, line);) {
        if (line.find("resource ") == std::string::npos) continue;
        std::istringstream words(line);
        std::string last;
        for (std::string word; words >> word;)
            if (word.find('/') != std::string::npos) last = word;
        if (!last.empty()) resources.push_back(last);
    }
    return resources;
}

std::string choice_of(const UcxConfig& config) {
    return fmt::format("UCX_TLS={}, UCX_NET_DEVICES={}", in_force(config.tls, "UCX_TLS"),
                       in_force(config.net_devices, "UCX_NET_DEVICES"));
}

}  // namespace offpath::transport::ucx
