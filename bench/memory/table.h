// A Google Benchmark reporter that prints one row per size and one column per way of copying: GB/s, and
// percent of one memcpy.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace offpath::memory::bench {

class Table : public benchmark::BenchmarkReporter {
  public:
    explicit Table(std::vector<std::string> columns) : columns_(std::move(columns)) {}
    bool ReportContext(const Context&) override { return true; }
    void ReportRuns(const std::vector<Run>& runs) override;
    void Finalize() override;

  private:
    std::vector<std::string> columns_;
    std::map<long, std::map<std::string, double>> rates_;  // size -> column -> bytes per second
};

}  // namespace offpath::memory::bench
