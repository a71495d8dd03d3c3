#include "proxy/cpu_list.h"

#include "base/log.h"

#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <stdexcept>

namespace offpath::proxy {

std::vector<int> parse_cpu_list(const std::string& text) {
    std::vector<int> cpus;
    if (text == "all") return cpus;
    const auto wrong = [&] {
        return std::invalid_argument(fmt::format(
            "'{}' is no list of CPUs: numbers and ranges below {} are accepted, e.g. 1,4-7, or all", text,
            CPU_SETSIZE));
    };
    const char* at = text.data();
    const char* const end = at + text.size();
    const auto number = [&] {
        int value = -1;
        const auto [stop, error] = std::from_chars(at, end, value);
        if (error != std::errc{} || value < 0 || value >= CPU_SETSIZE) throw wrong();
        at = stop;
        return value;
    };
    while (true) {
        const int first = number();
        int last = first;
        if (at != end && *at == '-') {
            ++at;
            last = number();
        }
        if (last < first) throw wrong();
        for (int cpu = first; cpu <= last; ++cpu)
            cpus.push_back(cpu);
        if (at == end) return cpus;
        if (*at++ != ',') throw wrong();
    }
}

void use_cpus(const std::vector<int>& cpus) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpus.empty()) {
        for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
            CPU_SET(cpu, &set);
    }
    for (int cpu : cpus)
        CPU_SET(static_cast<std::size_t>(cpu), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        log::warn(Code::cores, "the CPUs asked for cannot be used: {}", std::strerror(errno));
}

}  // namespace offpath::proxy
