// What stands in for Yama with ptrace_scope 1: prctl(PR_SET_PTRACER) takes note of whom a process lets in, in
// a file of OFFPATH_TEST_YAMA named by its number, and process_vm_readv and process_vm_writev of another
// process fail with EPERM unless it lets the caller in. Ancestors are not told apart.
#pragma once

#include <string>

#include <sys/types.h>

namespace offpath::test {

// "any", the number of a process, or nothing.
std::string tracer_of(pid_t process);

}  // namespace offpath::test
