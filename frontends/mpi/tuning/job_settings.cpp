#include "job_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "base/environment.h"
#include "refinement.h"
#include "runtime/runtime.h"

namespace offpath::mpi {
namespace {

TuningSettings read_tuning_settings() {
    TuningSettings read;
    read.explain = environment::flag("OFFPATH_EXPLAIN", false) ? 1 : 0;
    read.first_trial_after = environment::number("OFFPATH_REFINE_AFTER", Slot::usual_first_trial);
    if (!environment::flag("OFFPATH_REFINE", true)) read.first_trial_after = 0;
    read.refine_sums = environment::flag("OFFPATH_REFINE_SUMS", false) ? 1 : 0;
    if (environment::flag("OFFPATH_DETERMINISTIC", false)) {
        if (read.refine_sums != 0) {
            throw std::invalid_argument(
                "OFFPATH_DETERMINISTIC=1 and OFFPATH_REFINE_SUMS=on contradict each other: accepted is one "
                "of "
                "them");
        }
        read.deterministic = 1;
        read.first_trial_after = 0;
    }
    read.agree_ms = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(environment::number("OFFPATH_AGREE_MS", 250), 1U << 30));
    return read;
}

// An unreadable table is reported once, and changes nothing.
std::vector<TableRow> read_table() {
    const std::string path = environment::text("OFFPATH_TUNING", "");
    if (path.empty() || path == "off") return {};
    if (tuning_settings.deterministic != 0) {
        warn(Code::setting,
             fmt::format("OFFPATH_TUNING={} has no effect with OFFPATH_DETERMINISTIC=1", path));
        return {};
    }
    try {
        return Table::read(path).rows();
    } catch (const std::invalid_argument& error) {
        warn(Code::setting, fmt::format("{}; the fixed switch-overs are used", error.what()));
        return {};
    }
}

void agree_on_costs() {
    static_assert(std::is_trivially_copyable_v<TableRow>);
    std::vector<TableRow> rows;
    if (runtime().rank == 0) rows = read_table();
    std::uint64_t count = rows.size();
    PMPI_Bcast(&count, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    rows.resize(count);
    PMPI_Bcast(rows.data(), static_cast<int>(count * sizeof(TableRow)), MPI_BYTE, 0, MPI_COMM_WORLD);
    measured_costs = Table(std::move(rows));
}

}  // namespace

void agree_on_tuning() {
    tuning_settings = settings_of_rank_0(read_tuning_settings);
    agree_on_costs();
    host_calls_are_quiet = runtime().settings.verbose < 2 && runtime().settings.summary_file == 0 &&
                           tuning_settings.explain == 0;
    blocking_may_pay_bits =
        measured_costs.empty() ? runtime().settings.selection.ops.blocking : ~std::uint32_t{0};
}

}  // namespace offpath::mpi
