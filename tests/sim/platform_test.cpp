// Platform files: what is wrong is said with the file, the field and the value.
#include "sim/machine/platform.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace offpath::sim {
namespace {

nlohmann::json good() {
    nlohmann::json file{{"name", "x"}, {"memory", "cma"}, {"protocol", "stream"}, {"cores", "own"}};
    for (const char* count : {"host_cores", "device_cores"})
        file[count] = {{"value", 2}, {"source", "a test"}};
    for (const char* figure :
         {"link_Bps", "link_burst_bytes", "link_latency_s", "switch_latency_s", "inside_Bps",
          "inside_latency_s", "host_memory_call_s", "host_memory_Bps", "bus_Bps", "bus_latency_s", "post_s",
          "command_s", "completion_s", "wake_s", "spin_s", "connect_s"})
        file[figure] = {{"value", 0.5}, {"assumed", {0.1, 1}}};
    for (const std::string who : {"host.", "device."})
        for (const char* figure : {"send_s", "receive_s", "fetch_s", "send_byte_s", "receive_byte_s",
                                   "copy_Bps", "reduce_Bps", "round_s", "operation_s", "switch_s"})
            file[who + figure] = {{"value", 0.5}, {"source", "a test"}};
    return file;
}

std::string error_of(const nlohmann::json& file) {
    try {
        (void)parse_platform("p.json", file.dump());
    } catch (const PlatformError& error) {
        return error.what();
    }
    return "";
}

TEST(SimPlatform, ReadsAllFigures) {
    const Platform platform = parse_platform("p.json", good().dump());
    EXPECT_EQ(platform.host_cores, 2u);
    EXPECT_EQ(platform.memory, HostMemoryKind::cma);
    EXPECT_EQ(platform.protocol, Protocol::stream);
    EXPECT_DOUBLE_EQ(platform.link_Bps, 0.5);
    EXPECT_DOUBLE_EQ(platform.device.round_s, 0.5);
}

TEST(SimPlatform, NamesFileFieldAndValue) {
    auto file = good();
    file.erase("link_Bps");
    EXPECT_EQ(error_of(file), "p.json: link_Bps: is missing");
    file = good();
    file["link_latency_s"]["value"] = -1;
    file["link_latency_s"].erase("assumed");
    file["link_latency_s"]["source"] = "a test";
    EXPECT_EQ(error_of(file), "p.json: link_latency_s: -1 is not accepted; accepted are numbers from 0");
    file = good();
    file["bus_Bps"]["value"] = 0;
    EXPECT_EQ(error_of(file), "p.json: bus_Bps: 0 is not accepted; accepted are numbers above 0");
    file = good();
    file["bus_Bps"]["value"] = 3;
    EXPECT_EQ(error_of(file), "p.json: bus_Bps: 3 is outside of its \"assumed\" range [0.1,1]");
    file = good();
    file["post_s"] = {{"value", 1}};
    EXPECT_EQ(error_of(file),
              "p.json: post_s: says neither its \"source\" nor its \"assumed\" range, or both");
    file = good();
    file["links"] = 3;
    EXPECT_EQ(error_of(file), "p.json: links: no platform has this field");
    file = good();
    file["memory"] = "xgvmi";
    EXPECT_EQ(error_of(file), "p.json: memory: \"xgvmi\" needs \"protocol\": \"rdma\"");
    file = good();
    file["host_cores"]["value"] = 1.5;
    EXPECT_EQ(error_of(file), "p.json: host_cores: 1.5 is no whole number to 4096");
    EXPECT_EQ(error_of(nlohmann::json::array()), "p.json: the file: an object is wanted");
    EXPECT_THROW((void)parse_platform("p.json", "{"), PlatformError);
}

}  // namespace
}  // namespace offpath::sim
