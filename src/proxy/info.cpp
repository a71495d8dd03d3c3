#include "proxy/info.h"

#include "control/messages.h"
#include "control/socket.h"
#include "link/choice/transport_choice.h"
#include "memory/cma.h"
#include "proxy/bounded_answer.h"
#include "transport/ucx/ucx_transport.h"

#include <fmt/format.h>

#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <functional>
#include <thread>

namespace offpath::proxy {
namespace {

// Whether this process can read another process of this user. It tries to read a child, since reading itself
// proves nothing.
bool cma_works(std::string& why_not) {
    static const std::uint64_t word = 0x6f666670617468;
    const pid_t parent = getpid();
    int gate[2];
    if (pipe(gate) != 0) {
        why_not = "no pipe";
        return false;
    }
    const pid_t child = fork();
    if (child == 0) {
        close(gate[1]);
        memory::allow_cma(parent);
        char byte;
        [[maybe_unused]] const auto got = read(gate[0], &byte, 1);
        _exit(0);
    }
    close(gate[0]);
    // The child may not have allowed it yet. Only Yama makes that necessary, so a few tries are enough.
    Status status = Status::unsupported;
    for (int attempt = 0; child > 0 && attempt < 20 && status != Status::ok; ++attempt) {
        status = memory::cma_probe(child, reinterpret_cast<std::uint64_t>(&word), word, why_not);
        if (status != Status::ok) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    close(gate[1]);
    if (child > 0) waitpid(child, nullptr, 0);
    return status == Status::ok;
}

using Json = nlohmann::ordered_json;

// UCX tries cards out, and may wait for one that does not answer. All of it together ends in half a minute.
constexpr std::chrono::seconds patience{15};

Json within_patience(const std::function<Json()>& question, const std::function<Json(std::string)>& unknown) {
    const auto answer = answer_within(patience, [&] { return question().dump(); });
    if (answer.has_value()) return Json::parse(*answer);
    return unknown(fmt::format("unknown: UCX did not answer within {} s", patience.count()));
}

// What UCX finds, and what its memory exporter does.
Json ucx_info(const std::string& net_devices) {
    return within_patience(
        [&] {
            transport::UcxConfig config;
            config.net_devices = net_devices;
            const transport::UcxFacts facts = transport::ucx_facts(config);
            Json ucx{{"compiled", facts.compiled_version},
                     {"loaded", facts.loaded_version},
                     {"transports", facts.resources},
                     {"exported_memory_compiled", facts.exported_memory_compiled}};
            if (!facts.problem.empty()) ucx["problem"] = facts.problem;
            const std::string note = facts.exported_memory_compiled
                                         ? facts.exported_memory_probe
                                         : "the UCX that this was built with has no exported memory handles";
            return Json{{"ucx", ucx}, {"works", facts.exported_memory_works}, {"note", note}};
        },
        [](const std::string& why) {
            const Json ucx{{"transports", Json::array()}, {"problem", why}};
            return Json{{"ucx", ucx}, {"works", false}, {"note", why}};
        });
}

Json link_info(const std::string& net_devices) {
    return within_patience(
        [&] {
            const link::LinkFacts link = link::link_facts(net_devices);
            return Json{{"ways", link.ways}, {"completions", link.completions}};
        },
        [](const std::string& why) {
            return Json{{"ways", why}, {"completions", why}};
        });
}

}  // namespace

std::string device_info(const std::string& node, const std::string& net_devices) {
    const Json found = ucx_info(net_devices);
    std::string cma_problem;
    const bool cma = cma_works(cma_problem);

    Json back_ends = Json::array();
    back_ends.push_back({{"name", "xgvmi"},
                         {"available", found["works"]},
                         {"serves", "memory exported by the host, over the network card"},
                         {"progress", "device"},
                         {"note", found["note"]}});
    back_ends.push_back({{"name", "map"},
                         {"available", true},
                         {"serves", "memory from offpath_mem_alloc"},
                         {"progress", "device"},
                         {"note", "shared memory files"}});
    back_ends.push_back({{"name", "cma"},
                         {"available", cma},
                         {"serves", "any memory of the process"},
                         {"progress", "device"},
                         {"note", cma ? "process_vm_readv and process_vm_writev" : cma_problem}});
    back_ends.push_back({{"name", "staged"},
                         {"available", true},
                         {"serves", "any memory of the process"},
                         {"progress", "agent"},
                         {"note", "chunks, copied by a sleeping thread of the process"}});
    Json info;
    info["node"] = node.empty() ? control::host_name() : node;
    info["host"] = control::host_name();
    info["attach"] = "local";
    info["cpus_online"] = sysconf(_SC_NPROCESSORS_ONLN);
    info["protocol_version"] = control::protocol_version;
    info["back_ends"] = back_ends;
    info["ucx"] = found["ucx"];
    info["link"] = link_info(net_devices);
    info["progress_guarantees"] = {{"device", "transfers need nothing from the process"},
                                   {"agent", "a sleeping thread of the process wakes to serve transfers"}};
    return info.dump(2);
}

}  // namespace offpath::proxy
