#include "table.h"

#include <cstdio>
#include <cstdlib>

namespace offpath::memory::bench {

namespace {

std::string size_name(long bytes) {
    return bytes >= 1 << 20 ? std::to_string(bytes >> 20) + " MiB" : std::to_string(bytes >> 10) + " KiB";
}

}  // namespace

void Table::ReportRuns(const std::vector<Run>& runs) {
    for (const Run& run : runs) {
        if (run.error_occurred || (run.run_type == Run::RT_Aggregate && run.aggregate_name != "median"))
            continue;
        const auto rate = run.counters.find("bytes_per_second");
        if (rate == run.counters.end()) continue;
        rates_[std::atol(run.run_name.args.c_str())][run.run_name.function_name] = rate->second.value;
    }
}

void Table::Finalize() {
    std::printf("GB/s, median (percent of one memcpy)\n%10s", "");
    for (const std::string& column : columns_)
        std::printf("%16s", column.c_str());
    std::printf("\n");
    for (const auto& [bytes, row] : rates_) {
        std::printf("%10s", size_name(bytes).c_str());
        const auto memcpy_rate = row.find("memcpy");
        for (const std::string& column : columns_) {
            const auto rate = row.find(column);
            if (rate == row.end())
                std::printf("%16s", "-");
            else if (memcpy_rate == row.end())
                std::printf("%16.2f", rate->second / 1e9);
            else
                std::printf("%9.2f (%3.0f%%)", rate->second / 1e9, 100 * rate->second / memcpy_rate->second);
        }
        std::printf("\n");
    }
}

}  // namespace offpath::memory::bench
