# libminimd-target.so, the kernels in OpenMP target regions, for --device-kind openmp. Its one source needs clang 16, the rest of it is
# that of minimd-kernels. Without clang it is left out, and minimd says so to those who ask for it.
option(MINIMD_TARGET_REGIONS "Build what --device-kind openmp needs, if clang 16 is there" ON)
find_program(MINIMD_CLANG clang++-16)
if(PROJECT_IS_TOP_LEVEL)
  find_program(MINIMD_OFFPATH_CLANG offpath-clang++)
else()
  set(MINIMD_OFFPATH_CLANG ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/offpath-clang++)
endif()
set(missing "")
if(NOT MINIMD_TARGET_REGIONS)
  set(missing "MINIMD_TARGET_REGIONS is off")
elseif(OFFPATH_SANITIZE OR CMAKE_CROSSCOMPILING)
  set(missing "they are not built with sanitizers or for another processor")
elseif(NOT MINIMD_CLANG)
  set(missing "clang++-16 is not installed (on Debian: clang-16 clang-tools-16 libomp-16-dev lld-16)")
elseif(NOT MINIMD_OFFPATH_CLANG)
  set(missing "offpath-clang++ was not found")
endif()
if(missing)
  message(STATUS "minimd: no target regions, so no --device-kind openmp: ${missing}")
  return()
endif()

set(target_library ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/libminimd-target.so)
set(source ${CMAKE_CURRENT_SOURCE_DIR}/offpath/target_regions.cpp)
set(device -Xoffload-linker-x86_64-pc-linux-gnu)
# Kernels that GCC's counters are in need its library of counters, which clang has none of.
set(counters)
if("${CMAKE_CXX_FLAGS}" MATCHES "--coverage")
  set(counters -lgcov ${device} -lgcov)
endif()
# The device's image is linked like the library: GCC's kernels, then Highway's library.
add_custom_command(OUTPUT ${target_library}
  COMMAND ${CMAKE_COMMAND} -E env OFFPATH_DEVICE_ARCHITECTURES=x86_64 ${MINIMD_OFFPATH_CLANG}
    -std=c++20 -O2 -Wall -Wextra -fopenmp -fPIC -fvisibility=hidden -shared
    -I${apps} "-I$<JOIN:$<TARGET_PROPERTY:offpath::offpath,INTERFACE_INCLUDE_DIRECTORIES>,;-I>"
    ${source} $<TARGET_OBJECTS:minimd_device_kernels> $<TARGET_FILE:minimd_kernels> -lhwy
    "${device};$<JOIN:$<TARGET_OBJECTS:minimd_device_kernels>,;${device};>" ${device} $<TARGET_FILE:minimd_kernels>
    ${counters} -Wl,--exclude-libs,ALL -o ${target_library}
  DEPENDS ${source} offpath/target_regions.h offpath/runtime_kernels.h minimd_device_kernels $<TARGET_OBJECTS:minimd_device_kernels> minimd_kernels
  COMMAND_EXPAND_LISTS VERBATIM)
add_custom_target(minimd-target ALL DEPENDS ${target_library})
if(PROJECT_IS_TOP_LEVEL)
  install(FILES ${target_library} DESTINATION lib)
endif()
