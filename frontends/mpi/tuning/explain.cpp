#include "explain.h"

#include <fmt/format.h>
#include <mpi.h>

#include <array>
#include <map>
#include <mutex>
#include <tuple>

#include "agreement.h"
#include "communicators/counters.h"
#include "job_settings.h"
#include "runtime/runtime.h"

namespace offpath::mpi {
namespace {

struct Tally {
    std::uint64_t on_host = 0, on_device = 0;
};
using TallyKey = std::tuple<const Team*, Op, Form, unsigned>;

std::mutex explained_mutex;
std::map<TallyKey, Tally> tallies;

bool explains(const Team& team) {
    return tuning_settings.explain != 0 && team.rank == 0;
}

std::string name_and_shape(const Team& team) {
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length = 0;
    const MPI_Comm comm = team.comm;
    if (comm != MPI_COMM_NULL) PMPI_Comm_get_name(comm, name, &length);
    const TeamShape shape = team.tuning->choices.shape();
    return fmt::format("{} ({} ranks, {} node{})", length > 0 ? name : "an unnamed communicator", shape.ranks,
                       shape.nodes, shape.nodes == 1 ? "" : "s");
}

std::string sizes(Op op, unsigned size_class) {
    if (size_class == 0 && traits(op).each_pair_decides()) return "of all sizes";
    const std::uint64_t from = size_class == 0 ? 0 : std::uint64_t{1} << (size_class - 1);
    return fmt::format("{} to {}{}", human_bytes(from), human_bytes(from == 0 ? 0 : 2 * from - 1),
                       traits(op).by_pair() ? " a pair" : "");
}

std::string in_numbers(const Cost& cost) {
    return fmt::format("{:.3g} ms, {:.0f} % hidden", cost.pure_s * 1e3, cost.overlap * 100);
}

std::string switch_over_of(const Choices& choices, Op op, Form form) {
    const std::uint64_t bytes = choices.threshold(op, form);
    if (choices.source(op) != Source::table) {
        return fmt::format("the device takes {} and more ({})", human_bytes(bytes),
                           choices.source(op) == Source::given ? "OFFPATH_MIN_BYTES" : "not measured");
    }
    return bytes == never ? "the device pays at no size measured"
                          : fmt::format("the device pays from {} on", human_bytes(bytes));
}

std::string measured(const Choices& choices, Op op, std::uint64_t bytes) {
    const std::vector<TableRow> rows = choices.rows(op);
    const std::optional<TableRow> row = at_size(rows, bytes);
    if (choices.source(op) != Source::table || rows.empty()) return "";
    const std::string shape =
        fmt::format("{} ranks on {} nodes", rows.front().shape.ranks, rows.front().shape.nodes);
    if (!row)
        return fmt::format("; the table for {} has {} to {}", shape, human_bytes(rows.front().bytes),
                           human_bytes(rows.back().bytes));
    return fmt::format("; the table for {}: host {}, device {}", shape, in_numbers(row->host),
                       in_numbers(row->device));
}

}  // namespace

void explain_kept_choice(const Team& team, Op op, Form form, std::uint64_t bytes, const Choice& choice) {
    if (!explains(team)) return;
    const unsigned cls = size_class(bytes);
    {
        const std::lock_guard lock(explained_mutex);
        Tally& count = tallies[{&team, op, form, cls}];
        ++(choice.device ? count.on_device : count.on_host);
    }
    if (choice.call.returned) {
        say(
            fmt::format("{} on {}, {}: {} from call {} on; nobody has met for some calls to tell whether the "
                        "program still only waits",
                        call_name(op, form), name_and_shape(team), sizes(op, cls),
                        choice.device ? "device" : "host", team.tuning->choices.calls()));
    }
    if (!choice.first) return;
    const Choices& choices = team.tuning->choices;
    say(fmt::format("{} on {}, {}: {}; {}{}{}", call_name(op, form), name_and_shape(team), sizes(op, cls),
                    choice.device ? "device" : "host", switch_over_of(choices, op, form),
                    measured(choices, op, bytes),
                    choice.engines == Engines::same ? "; sums that round keep their engine"
                    : choice.sampled != nullptr && choice.sampled->is_remembered()
                        ? "; an earlier run of the program has learned this"
                        : ""));
}

void explain_finding(const Team& team, const Slot& slot) {
    if (!explains(team)) return;
    say(fmt::format("{} on {}, {}: {} from call {} on; {}", call_name(slot.op()), name_and_shape(team),
                    sizes(slot.op(), size_class(slot.bytes())), name_of(slot.usual()),
                    team.tuning->choices.calls() + 1, slot.finding()));
}

void explain_switch(const Team& team, OpSet ops) {
    if (runtime().settings.verbose == 0) return;
    const std::uint32_t count =
        static_cast<std::uint32_t>(__builtin_popcount(ops.nonblocking) + __builtin_popcount(ops.blocking));
    say(fmt::format("switched {} from call {} of {} on",
                    count == 0 ? "off" : fmt::format("to {} operations", count),
                    team.tuning->choices.calls() + 1, name_and_shape(team)));
}

void explain_summary(const Team& team) {
    if (!explains(team)) return;
    const std::lock_guard lock(explained_mutex);
    const TallyKey first{&team, Op{}, Form{}, 0};
    auto entry = tallies.lower_bound(first);
    while (entry != tallies.end() && std::get<0>(entry->first) == &team) {
        const auto& [which, op, form, cls] = entry->first;
        say(fmt::format("{} on {}, {}: {} calls on the device, {} on the host", call_name(op, form),
                        name_and_shape(team), sizes(op, cls), entry->second.on_device,
                        entry->second.on_host));
        entry = tallies.erase(entry);
    }
}

}  // namespace offpath::mpi
