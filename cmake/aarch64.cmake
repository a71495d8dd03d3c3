# Toolchain file of the aarch64 build: Debian's cross compiler, the arm64 root of scripts/setup-aarch64.sh, qemu's user mode to run
# what was built. OFFPATH_AARCH64_ROOT names another root. CMake takes the root's prefix off the programs' run paths, so that they find
# UCX in /opt/ucx, under `qemu-aarch64 -L ROOT` as on a device that has it there.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES OFFPATH_AARCH64_ROOT)
set(OFFPATH_AARCH64_ROOT ${CMAKE_CURRENT_LIST_DIR}/../build-aarch64/root CACHE PATH "arm64 root (scripts/setup-aarch64.sh)")
get_filename_component(CMAKE_SYSROOT ${OFFPATH_AARCH64_ROOT} ABSOLUTE)
if(NOT EXISTS ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/libc.so)
  message(FATAL_ERROR "There is no arm64 root in ${CMAKE_SYSROOT}. Run `make aarch64`, which makes it, or scripts/setup-aarch64.sh.")
endif()
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)

find_program(OFFPATH_QEMU NAMES qemu-aarch64 qemu-aarch64-static NO_CMAKE_FIND_ROOT_PATH)
if(OFFPATH_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${OFFPATH_QEMU} -L ${CMAKE_SYSROOT})
endif()
