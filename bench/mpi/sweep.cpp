// The times of many operations and sizes in one run of the program, each from posting to its end. Calibration
// and validation of the simulator need many points, and starting a job takes longer than measuring one.
//
// A point is OPERATION:BYTES. The number of iterations follows from the time of the first ones, so that each
// point takes about --seconds; all ranks agree on it.
#include <algorithm>
#include <cmath>

#include "command_line/command_line.h"
#include "commands.h"
#include "interval.h"
#include "support/output_file.h"

namespace mpi_bench {

namespace {

struct Point {
    std::string op;
    std::uint64_t bytes = 0;
};

Point parse_point(const std::string& text) {
    const std::size_t colon = text.find(':');
    const std::vector<std::string> names = operation_names();
    Point point;
    point.op = text.substr(0, colon);
    const std::string bytes = colon == std::string::npos ? std::string() : text.substr(colon + 1);
    if (std::find(names.begin(), names.end(), point.op) == names.end())
        throw mpi_support::UsageError("--points " + text + ": " + point.op + " is no operation");
    if (const std::optional<std::uint64_t> size = cli::parse_size(bytes)) {
        point.bytes = *size;
        return point;
    }
    throw mpi_support::UsageError("--points " + text + ": write OPERATION:BYTES, such as ibcast:64K");
}

double quantile(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(std::lround(share * static_cast<double>(values.size() - 1)))];
}

class Sweep {
  public:
    Sweep(const SweepOptions& options) : options_(options), interval_(options.shared_clock) {}

    nlohmann::ordered_json measure(const Point& point) {
        Operation operation(point.op, point.bytes, options_.allocator);
        operation.prepare(0);
        std::vector<double> samples;
        for (int i = 0; i < kFirst; ++i)
            samples.push_back(once(operation));
        const bool first_right = operation.verify(0);
        const double each = median_of_slowest({samples.begin() + 1, samples.end()});
        const int more = static_cast<int>(
            std::clamp(options_.seconds / std::max(each + kMeetingSeconds, 1e-6), 5.0, kMost));
        samples.clear();
        posts_.clear();
        for (int i = 0; i < more; ++i)
            samples.push_back(once(operation));
        const std::vector<double> slowest = mpi_support::max_over_ranks(samples);
        return {{"op", point.op},
                {"bytes", point.bytes},
                {"pure_s", mpi_support::median(slowest)},
                {"low_s", quantile(slowest, 0.25)},
                {"high_s", quantile(slowest, 0.75)},
                {"post_s", median_of_slowest(posts_)},
                {"count", more},
                {"verified", mpi_support::all_ranks_agree(first_right && operation.verify(0))}};
    }

  private:
    static constexpr int kFirst = 4;
    static constexpr double kMost = 2000;
    static constexpr double kMeetingSeconds = 0.0015;  // of the agreement on the start of each iteration

    double once(Operation& operation) {
        interval_.start();
        const double begin = interval_.elapsed();
        operation.post();
        posts_.push_back(interval_.elapsed() - begin);
        operation.wait();
        return interval_.elapsed();
    }

    const SweepOptions& options_;
    Interval interval_;
    std::vector<double> posts_;
};

}  // namespace

cli::App* declare_sweep(cli::App& app, SweepOptions& options) {
    cli::App* command = app.add_subcommand("sweep", "Times of many operations and sizes in one run");
    command->add_option("--points", options.points, "OPERATION:BYTES, with commas")
        ->delimiter(',')
        ->required();
    command->add_option("--seconds", options.seconds, "How long to measure each point")
        ->check(cli::Range(0.001, 60.0))
        ->capture_default_str();
    command->add_option("--json", options.json, "Where the JSON line goes: a file, or - for standard output")
        ->check(mpi_support::output_file())
        ->capture_default_str();
    command->add_flag("--shared-clock", options.shared_clock,
                      "All ranks run on one machine: begin every interval at one instant of its clock");
    mpi_support::add_allocator_option(*command, options.allocator);
    return command;
}

int run_sweep(const SweepOptions& options, const mpi_support::World& world) {
    std::vector<Point> points;
    for (const std::string& text : options.points)
        points.push_back(parse_point(text));
    Sweep sweep(options);
    auto rows = nlohmann::ordered_json::array();
    bool verified = true;
    for (const Point& point : points) {
        rows.push_back(sweep.measure(point));
        verified = verified && rows.back().at("verified").get<bool>();
    }
    if (world.rank == 0)
        mpi_support::write_json_line({{"ranks", world.ranks}, {"rows", rows}, {"verified", verified}},
                                     options.json);
    return verified ? 0 : 1;
}

}  // namespace mpi_bench
