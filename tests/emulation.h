// Whether this program runs under qemu's user mode, for tests of what that cannot do. The kernel's own word
// on its architecture (Linux 6.1) is the one thing there that is not translated.
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
