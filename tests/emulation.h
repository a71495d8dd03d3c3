// Whether this program runs under qemu's user mode, for tests of what qemu cannot do. The kernel's own file
// about its architecture (Linux 6.1) is the one such file that qemu does not translate.
#pragma once

#include <sys/utsname.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace offpath::test {

inline bool emulated() {
    std::string kernel;
    utsname told{};
    if (std::ifstream("/proc/sys/kernel/arch") >> kernel && uname(&told) == 0) return kernel != told.machine;
    return std::getenv("OFFPATH_TEST_EMULATED") != nullptr;
}

}  // namespace offpath::test
