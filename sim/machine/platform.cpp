#include "sim/machine/platform.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace offpath::sim {
namespace {

using Json = nlohmann::json;

struct Figure {
    double Platform::*field = nullptr;
    bool may_be_zero = true;
};
struct WorkFigure {
    double Platform::Work::*field = nullptr;
    bool may_be_zero = true;
};

const std::map<std::string, Figure>& figures() {
    static const std::map<std::string, Figure> all{
        {"link_Bps", {&Platform::link_Bps, false}},
        {"link_burst_bytes", {&Platform::link_burst_bytes}},
        {"link_latency_s", {&Platform::link_latency_s}},
        {"switch_latency_s", {&Platform::switch_latency_s}},
        {"inside_Bps", {&Platform::inside_Bps, false}},
        {"inside_latency_s", {&Platform::inside_latency_s}},
        {"host_memory_call_s", {&Platform::host_memory_call_s}},
        {"host_memory_Bps", {&Platform::host_memory_Bps, false}},
        {"bus_Bps", {&Platform::bus_Bps, false}},
        {"bus_latency_s", {&Platform::bus_latency_s}},
        {"post_s", {&Platform::post_s}},
        {"command_s", {&Platform::command_s}},
        {"completion_s", {&Platform::completion_s}},
        {"wake_s", {&Platform::wake_s}},
        {"spin_s", {&Platform::spin_s}},
        {"connect_s", {&Platform::connect_s}},
    };
    return all;
}

const std::map<std::string, WorkFigure>& work_figures() {
    using Work = Platform::Work;
    static const std::map<std::string, WorkFigure> all{
        {"send_s", {&Work::send_s}},
        {"receive_s", {&Work::receive_s}},
        {"fetch_s", {&Work::fetch_s}},
        {"send_byte_s", {&Work::send_byte_s}},
        {"receive_byte_s", {&Work::receive_byte_s}},
        {"copy_Bps", {&Work::copy_Bps, false}},
        {"reduce_Bps", {&Work::reduce_Bps, false}},
        {"round_s", {&Work::round_s, false}},
        {"operation_s", {&Work::operation_s}},
        {"switch_s", {&Work::switch_s}},
    };
    return all;
}

class PlatformReader {
  public:
    PlatformReader(const std::string& path, const std::string& text) : path_(path) {
        try {
            file_ = Json::parse(text);
        } catch (const Json::exception& error) {
            throw PlatformError(fmt::format("{}: not JSON: {}", path, error.what()));
        }
        if (!file_.is_object()) fail("the file", "an object is wanted");
    }

    Platform read() {
        Platform platform;
        platform.name = word("name", {});
        platform.memory = static_cast<HostMemoryKind>(choice("memory", {"map", "cma", "staged", "xgvmi"}));
        platform.protocol = static_cast<Protocol>(choice("protocol", {"rdma", "stream"}));
        platform.shared_cores = choice("cores", {"own", "shared"}) == 1;
        platform.host_cores = count("host_cores");
        platform.device_cores = count("device_cores");
        for (const auto& [name, figure] : figures())
            platform.*figure.field = number(name, figure.may_be_zero);
        for (const auto& [name, figure] : work_figures()) {
            platform.host.*figure.field = number("host." + name, figure.may_be_zero);
            platform.device.*figure.field = number("device." + name, figure.may_be_zero);
        }
        if (file_.contains("turn_s")) platform.turn_s = number("turn_s", true);
        seen_.insert({"description", "energy", "protocols"});
        for (const auto& [name, value] : file_.items())
            if (!seen_.contains(name)) fail(name, "no platform has this field");
        if (platform.memory == HostMemoryKind::xgvmi && platform.protocol == Protocol::stream)
            fail("memory", "\"xgvmi\" needs \"protocol\": \"rdma\"");
        return platform;
    }

  private:
    [[noreturn]] void fail(const std::string& field, const std::string& why) const {
        throw PlatformError(fmt::format("{}: {}: {}", path_, field, why));
    }
    const Json& at(const std::string& field) {
        seen_.insert(field);
        if (!file_.contains(field)) fail(field, "is missing");
        return file_.at(field);
    }
    std::string word(const std::string& field, const std::vector<std::string>& accepted) {
        const Json& value = at(field);
        if (!value.is_string() || value.get<std::string>().empty())
            fail(field, fmt::format("{} is no text", value.dump()));
        const auto text = value.get<std::string>();
        if (!accepted.empty() && std::find(accepted.begin(), accepted.end(), text) == accepted.end())
            fail(field,
                 fmt::format("\"{}\" is not accepted; accepted are {}", text, fmt::join(accepted, ", ")));
        return text;
    }
    std::size_t choice(const std::string& field, const std::vector<std::string>& accepted) {
        const std::string text = word(field, accepted);
        return static_cast<std::size_t>(std::find(accepted.begin(), accepted.end(), text) - accepted.begin());
    }
    // A figure is {"value": V} with where it comes from: "source", or "assumed": [low, high].
    double number(const std::string& field, bool may_be_zero) {
        const Json& figure = at(field);
        if (!figure.is_object() || !figure.contains("value") || !figure.at("value").is_number())
            fail(field, fmt::format("{} is no {{\"value\": NUMBER, ...}}", figure.dump()));
        const auto value = figure.at("value").get<double>();
        if (!std::isfinite(value) || value < 0 || (value == 0 && !may_be_zero))
            fail(field, fmt::format("{} is not accepted; accepted are numbers {} 0",
                                    figure.at("value").dump(), may_be_zero ? "from" : "above"));
        for (const auto& [key, unused] : figure.items())
            if (key != "value" && key != "source" && key != "assumed")
                fail(field, fmt::format(
                                "no figure has \"{}\"; it has \"value\" and \"source\" or \"assumed\"", key));
        if (figure.contains("source") == figure.contains("assumed"))
            fail(field, "says neither its \"source\" nor its \"assumed\" range, or both");
        if (figure.contains("source")) {
            if (!figure.at("source").is_string() || figure.at("source").get<std::string>().empty())
                fail(field, "its \"source\" is no text");
            return value;
        }
        const Json& range = figure.at("assumed");
        if (!range.is_array() || range.size() != 2 || !range[0].is_number() || !range[1].is_number())
            fail(field, fmt::format("its \"assumed\" range {} is no [LOW, HIGH]", range.dump()));
        if (value < range[0].get<double>() || value > range[1].get<double>())
            fail(field, fmt::format("{} is outside of its \"assumed\" range {}", value, range.dump()));
        return value;
    }
    std::uint32_t count(const std::string& field) {
        const double value = number(field, false);
        if (value != std::floor(value) || value > 4096)
            fail(field, fmt::format("{} is no whole number to 4096", value));
        return static_cast<std::uint32_t>(value);
    }

    const std::string path_;
    Json file_;
    std::set<std::string> seen_;
};

}  // namespace

Platform parse_platform(const std::string& path, const std::string& text) {
    return PlatformReader(path, text).read();
}

}  // namespace offpath::sim
