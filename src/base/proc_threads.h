// Threads of processes, as /proc shows them. Threads: any.
#pragma once

#include <string>

#include <sys/types.h>

namespace offpath {

// The first line of /proc/PROCESS/task/THREAD/NAME. Empty: it cannot be read, because the thread has ended or
// is not visible here.
std::string thread_file(pid_t process, pid_t thread, const char* name);
// The thread's state, as a letter of its file `stat`; 0: it cannot be read.
char thread_letter(pid_t process, pid_t thread);
// Whether the process will end as soon as its threads get a core, because SIGKILL is on its way to it, or has
// ended and its parent has not asked for it. False if it is not visible here.
bool is_dying(pid_t process);

}  // namespace offpath
