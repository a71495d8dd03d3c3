// A platform with round figures for tests: a link of 1 GB/s and 1 us, cores that need 100 ns a message.
#pragma once

#include "sim/machine/platform.h"

namespace offpath::sim {

inline Platform test_platform() {
    Platform platform;
    platform.name = "test";
    platform.memory = HostMemoryKind::map;
    platform.protocol = Protocol::rdma;
    platform.host_cores = 4;
    platform.device_cores = 2;
    platform.link_Bps = 1e9;
    platform.link_latency_s = 1e-6;
    platform.inside_Bps = 5e9;
    platform.inside_latency_s = 3e-7;
    for (Platform::Work* work : {&platform.host, &platform.device})
        *work = {1e-7, 1e-7, 1e-7, 0, 0, 5e9, 4e9, 5e-8, 2e-7};
    platform.host_memory_call_s = 3e-7;
    platform.host_memory_Bps = 5e9;
    platform.bus_Bps = 2e9;
    platform.bus_latency_s = 1e-6;
    platform.post_s = 1e-7;
    platform.command_s = 2e-7;
    platform.completion_s = 2e-7;
    return platform;
}

}  // namespace offpath::sim
