// The name of the monotonic clock of this process. Processes with equal names read one clock. The name is the
// id of this run of the system. In a time namespace whose clock is shifted it is the id's beginning and the
// shift.
#pragma once

#include <string>

namespace offpath::trace {

std::string machine_clock();
// The same from the contents of /proc/sys/kernel/random/boot_id and /proc/self/timens_offsets. At most 39
// characters.
std::string machine_clock(const std::string& boot_id, const std::string& offsets);

}  // namespace offpath::trace
