// The table of parts (runtime/parts.h). A part opens after those above it and closes before them. Offloaded
// requests finish before point-to-point messages do. A rank that has finished both still answers letters
// until all ranks have finished them; letters close last.
#include "runtime/parts.h"

#include "communicators/communicators.h"
#include "communicators/counters.h"
#include "datatypes/datatypes.h"
#include "devices/summary.h"
#include "p2p/communicator_state.h"
#include "p2p/neighbours.h"
#include "p2p/outstanding.h"
#include "p2p/parcel.h"
#include "p2p/settings.h"
#include "program_memory/sharing.h"
#include "requests/held_calls.h"
#include "requests/leaving_messages.h"
#include "requests/offloaded_requests.h"
#include "rma/windows.h"
#include "runtime/letters.h"
#include "runtime/losses.h"
#include "runtime/runtime.h"
#include "runtime/staging.h"
#include "tools/control_variables.h"
#include "tuning/agreement.h"
#include "tuning/explain.h"
#include "tuning/job_settings.h"
#include "tuning/samples.h"
#include "tuning/signature_file.h"
#include "tuning/switches.h"

namespace offpath::mpi {
namespace {

// Only rank 0 opens the switches.
void open_tuning_of_job() {
    if (runtime().rank == 0) open_switches();
    read_signature();
}

void end_tuning_of(Team& team) {
    explain_summary(team);
    close_tuning(team);
}

void close_messages() {
    p2p::close_parcels();
    p2p::close_pairs();
}

constexpr Part table[] = {
    {.open = open_letters, .close = close_letters},
    {.close = close_staging},
    {.open = begin_sharing, .close = end_sharing},
    {.open = open_datatypes, .close = close_datatypes},
    {.finish = finish_all_requests,
     .print_summary = print_summary,
     .add_hints = add_collective_hints,
     .counters = collective_counters},
    {.counters = request_counters},
    {.print_summary = devices::print_summary, .counters = devices::counters},
    {.agree_on_settings = p2p::agree_on_settings,
     .open = p2p::open_pairs,
     .finish = p2p::finish_all,
     .print_summary = p2p::print_summary,
     .add_hints = p2p::add_hints,
     .close = close_messages,
     .team_made = p2p::give_pairs,
     .progress = p2p::poll,
     .counters = p2p::counters},
    {.finish = answer_until_all_end},
    {.agree_on_settings = agree_on_tuning,
     .open = open_tuning_of_job,
     .finish = forget_samples,
     .close = keep_what_was_learned,
     .team_made = open_tuning,
     .communicator_ends = end_tuning_of},
    {.open = open_communicators, .finish = wait_for_leaving_messages, .close = close_communicators},
    {.open = open_windows,
     .print_summary = print_one_sided_summary,
     .add_hints = add_window_hints,
     .close = close_windows,
     .counters = one_sided_counters},
    {.agree_on_settings = tools::agree_on_values, .counters = loss_counters},
};

}  // namespace

constinit const std::span<const Part> parts = table;

}  // namespace offpath::mpi
