// A stand-in for Yama with ptrace_scope 1. prctl(PR_SET_PTRACER) records the process that may trace the
// caller, in a file of OFFPATH_TEST_YAMA named by the caller's number. process_vm_readv and process_vm_writev
// of another process fail with EPERM unless that process allows the caller. Ancestors get no special
// treatment.
#pragma once

#include <string>

#include <sys/types.h>

namespace offpath::test {

// Returns "any", the number of a process, or an empty text.
std::string tracer_of(pid_t process);

}  // namespace offpath::test
