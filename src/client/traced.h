// What a rank's trace says about operations on its device: from their start to the notice of their end.
#pragma once

#include "client/schedule_cache.h"
#include "client/team.h"
#include "trace/trace.h"

namespace offpath::client {

// Begins the trace that the environment asks for. A trace that cannot be written is reported, and the program
// runs without.
void open_trace(std::uint32_t rank, std::uint32_t size);

// A schedule was started as the team's start number `sequence`. Call it while trace::on().
void trace_start(const offpath_team& team, std::uint32_t sequence, const RegisteredSchedule& schedule,
                 offpath_request& request);

}  // namespace offpath::client
