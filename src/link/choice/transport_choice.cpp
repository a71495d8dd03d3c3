#include "link/choice/transport_choice.h"

#include "base/environment.h"
#include "base/log.h"
#include "link/choice/dual_transport.h"
#include "link/choice/passive_tls.h"
#include "link/rings.h"
#include "transport/encrypted/encrypted.h"
#include "transport/tcp/tcp_transport.h"
#include "transport/ucx/one_sided.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace offpath::link {
namespace {

std::string in_force(const std::string& devices) {
    const char* const value = std::getenv("UCX_NET_DEVICES");
    return !devices.empty() || value == nullptr ? devices : value;
}

bool has_rdma() {
    std::error_code error;
    return !std::filesystem::is_empty("/sys/class/infiniband", error) && !error;
}

// Whether UCX found more than TCP among the devices that it may use.
bool beyond_tcp(const transport::Transport& ucx) {
    std::istringstream words(ucx.describe());
    for (std::string word; words >> word;)
        if (word.find('/') != std::string::npos && !word.starts_with("tcp/")) return true;
    return false;
}

void tell_missing(const char* way, const std::string& why, bool asked_for) {
    if (asked_for)
        log::warn(Code::slower_way, "the link is not offered over {}: {}", way, why);
    else
        log::info("the link is not offered over {}: {}", way, why);
}

struct Transports {
    std::unique_ptr<transport::Transport> ucx, tcp;  // null: not offered
    bool encrypted = false;                          // then there is one of them
};

Status encryption_setting(bool& encrypt, std::string& problem) try {
    encrypt = environment::flag("OFFPATH_ENCRYPT", false);
    return Status::ok;
} catch (const std::invalid_argument& error) {
    problem = error.what();
    return Status::invalid;
}

void encrypt(Transports& made) {
    for (auto* each : {&made.ucx, &made.tcp})
        if (*each != nullptr) *each = transport::make_encrypted_transport(std::move(*each));
}

Status open(const std::string& devices, bool listens, Transports& made, std::string& problem) {
    const char* const setting = std::getenv("OFFPATH_LINK");
    std::string way = setting == nullptr || *setting == '\0' ? "auto" : setting;
    if (way != "auto" && way != "tcp" && way != "ucx" && way != "both") {
        problem = fmt::format("OFFPATH_LINK={}: auto, tcp, ucx or both is accepted", way);
        return Status::invalid;
    }
    Status status = encryption_setting(made.encrypted, problem);
    if (status != Status::ok) return status;
    if (made.encrypted && way == "both") {
        problem = "OFFPATH_LINK=both: with OFFPATH_ENCRYPT, auto, tcp or ucx is accepted";
        return Status::invalid;
    }
    // Both sides must choose alike, because an encrypted address does not show what is below.
    if (made.encrypted && way == "auto") way = "tcp";
    std::string no_ucx, no_tcp;
    if (way == "ucx" || way == "both" || (way == "auto" && has_rdma())) {
        status = make_ucx_way(devices, made.ucx, no_ucx);
        if (way == "auto" && made.ucx != nullptr && !beyond_tcp(*made.ucx)) {
            made.ucx.reset();
            no_ucx = "it found nothing but TCP";
        }
    }
    if (way != "ucx") status = make_tcp_way(devices, listens, made.tcp, no_tcp);
    if (made.ucx == nullptr && made.tcp == nullptr) {
        problem = no_tcp.empty() ? no_ucx : no_tcp;
        return status;
    }
    if (made.ucx == nullptr && !no_ucx.empty()) tell_missing("UCX", no_ucx, way == "both");
    if (made.tcp == nullptr && !no_tcp.empty()) tell_missing("plain TCP", no_tcp, way == "both");
    if (made.encrypted) encrypt(made);
    return Status::ok;
}

Status add_rings(const std::string& devices, const Transports& made,
                 std::unique_ptr<transport::OneSided>& one_sided, std::string& problem) {
    std::string note;
    if (made.ucx == nullptr || made.encrypted) {
        RingsChoice choice{};
        const Status status = rings_choice(choice, problem);
        if (status != Status::ok || !made.encrypted || choice != RingsChoice::remote_memory) return status;
        problem = "OFFPATH_RINGS=rma: with OFFPATH_ENCRYPT, auto or messages is accepted";
        return Status::invalid;
    }
    const Status status = make_rings(devices, one_sided, note);
    if (status == Status::ok)
        log::info("completions of the link: {}", note);
    else
        problem = note;
    return status;
}

// Returns the transports that the environment allows and that may be passive; empty: none.
std::string allowed_passive_tls() {
    const char* const value = std::getenv("UCX_TLS");
    const std::string allowed = value == nullptr ? "" : value;
    if (allowed.empty() || allowed == "all" || allowed.front() == '^') return has_rdma() ? "rc,dc" : "";
    return passive_tls(allowed);
}

}  // namespace

Status rings_choice(RingsChoice& choice, std::string& problem) {
    const char* const setting = std::getenv("OFFPATH_RINGS");
    const std::string_view value = setting == nullptr || *setting == '\0' ? "auto" : setting;
    if (value == "auto")
        choice = RingsChoice::automatic;
    else if (value == "messages")
        choice = RingsChoice::messages;
    else if (value == "rma")
        choice = RingsChoice::remote_memory;
    else {
        problem = fmt::format("OFFPATH_RINGS={}: auto, messages or rma is accepted", value);
        return Status::invalid;
    }
    return Status::ok;
}

Status make_rings(const std::string& devices, std::unique_ptr<transport::OneSided>& one_sided,
                  std::string& note) {
    RingsChoice choice{};
    if (const Status status = rings_choice(choice, note); status != Status::ok) return status;
    if (choice == RingsChoice::messages) {
        note = "messages, as OFFPATH_RINGS says";
        return Status::ok;
    }
    transport::UcxConfig config;
    config.net_devices = devices;
    config.several_threads = true;
    if (choice == RingsChoice::automatic) {
        config.tls = allowed_passive_tls();
        std::string probed;
        if (config.tls.empty() || !transport::puts_are_passive(config, probed)) {
            note = "messages: remote memory is " + (probed.empty() ? "not passive here" : probed);
            return Status::ok;
        }
    } else if (std::getenv("UCX_TLS") == nullptr) {
        config.tls = "^shm,self";
    }
    std::string problem;
    if (transport::make_ucx_one_sided(config, one_sided, problem) == Status::ok)
        note = "remote memory over " + one_sided->describe();
    else
        note = "messages: " + problem;
    return Status::ok;
}

Status make_ucx_way(const std::string& devices, std::unique_ptr<transport::Transport>& transport,
                    std::string& problem) {
    transport::UcxConfig config;
    config.net_devices = devices;
    config.in_process = false;
    config.several_threads = true;
    if (std::getenv("UCX_TLS") == nullptr) config.tls = "^shm,self";
    return transport::make_ucx_transport(config, transport, problem);
}

Status make_tcp_way(const std::string& devices, bool listens,
                    std::unique_ptr<transport::Transport>& transport, std::string& problem) {
    transport::TcpConfig config;
    config.devices = in_force(devices);
    config.listen = listens;
    return transport::make_tcp_transport(config, transport, problem);
}

Status make_host_transport(const std::string& devices, std::unique_ptr<transport::Transport>& transport,
                           std::unique_ptr<transport::OneSided>& one_sided, std::string& problem) {
    Transports made;
    if (const Status status = open(devices, false, made, problem); status != Status::ok) return status;
    if (const Status status = add_rings(devices, made, one_sided, problem); status != Status::ok)
        return status;
    if (made.ucx != nullptr && made.tcp != nullptr)
        return make_either_transport(std::move(made.ucx), std::move(made.tcp), transport, problem);
    transport = std::move(made.ucx != nullptr ? made.ucx : made.tcp);
    return Status::ok;
}

LinkFacts link_facts(const std::string& devices) {
    LinkFacts facts;
    Transports made;
    std::string problem;
    if (open(devices, false, made, problem) != Status::ok) return {"none: " + problem, ""};
    for (const transport::Transport* each : {made.ucx.get(), made.tcp.get()})
        if (each != nullptr) facts.ways += (facts.ways.empty() ? "" : " or ") + each->describe();
    facts.completions = "messages: the link goes over plain TCP";
    std::unique_ptr<transport::OneSided> one_sided;
    if (made.encrypted)
        facts.completions = "messages: the link is encrypted";
    else if (made.ucx != nullptr)
        (void)make_rings(devices, one_sided, facts.completions);
    return facts;
}

Status open_device_links(const std::string& devices, std::unique_ptr<DeviceLinks>& links,
                         std::string& problem) {
    Transports made;
    if (const Status status = open(devices, true, made, problem); status != Status::ok) return status;
    std::unique_ptr<transport::OneSided> one_sided;
    if (const Status status = add_rings(devices, made, one_sided, problem); status != Status::ok)
        return status;
    if (made.encrypted) {
        links = make_device_links(std::move(made.ucx != nullptr ? made.ucx : made.tcp), nullptr);
        return Status::ok;
    }
    return make_either_links(std::move(made.ucx), std::move(made.tcp), std::move(one_sided), links, problem);
}

}  // namespace offpath::link
