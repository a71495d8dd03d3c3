# The headers of libraries, compiled once for all targets of the tree; once more for programs, with those of the command
# line and of JSON; and once more for what is compiled with less optimization: the tests.

# offpath_precompiled(NAME HEADERS...): the target that the precompiled headers NAME are made with.
function(offpath_precompiled name)
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp CONTENT "")
  add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  target_precompile_headers(${name} PRIVATE ${ARGN})
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
endfunction()

# offpath_use_precompiled(DIRECTORY): gives the headers to all C++ targets in DIRECTORY and below.
function(offpath_use_precompiled directory)
  get_property(targets DIRECTORY ${directory} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    get_target_property(sources ${target} SOURCES)
    # OpenMP would need precompiled headers of its own. GCC also takes options of optimization from such a header, which
    # kernels have others of.
    if(directory MATCHES "/apps/minimd" AND NOT target MATCHES "^minimd_(setup|setup_test|ranks_test)$")
      continue()
    endif()
    if(NOT type MATCHES "EXECUTABLE|(STATIC|SHARED|MODULE|OBJECT)_LIBRARY" OR target MATCHES "^offpath_precompiled" OR "${sources}" MATCHES "[.]c(;|$)")
      continue()
    endif()
    set(header offpath_precompiled)
    get_target_property(options ${target} COMPILE_OPTIONS)
    if("${options}" MATCHES "-O1")
      set(header offpath_precompiled_tests)
    elseif(directory MATCHES "^${PROJECT_SOURCE_DIR}/(apps|bench|sim)" OR target MATCHES "^(offpathd|fault-campaign)")
      set(header offpath_precompiled_programs)
    endif()
    set_target_properties(${target} PROPERTIES PRECOMPILE_HEADERS_REUSE_FROM ${header})
  endforeach()
  get_property(below DIRECTORY ${directory} PROPERTY SUBDIRECTORIES)
  foreach(each ${below})
    offpath_use_precompiled(${each})
  endforeach()
endfunction()

set(standard_headers <algorithm> <array> <atomic> <chrono> <condition_variable> <cstdint> <cstdio> <cstdlib> <cstring> <deque>
  <filesystem> <fstream> <functional> <map> <memory> <mutex> <optional> <random> <set> <span> <sstream> <string> <string_view>
  <thread> <tuple> <unordered_map> <unordered_set> <utility> <variant> <vector>)
if(OFFPATH_TOGETHER)
  # A precompiled header is only valid where these are defined as they were when it was made.
  add_compile_definitions($<$<COMPILE_LANGUAGE:CXX>:FMT_SHARED> $<$<COMPILE_LANGUAGE:CXX>:SPDLOG_SHARED_LIB>
    $<$<COMPILE_LANGUAGE:CXX>:SPDLOG_COMPILED_LIB> $<$<COMPILE_LANGUAGE:CXX>:SPDLOG_FMT_EXTERNAL>)
  offpath_precompiled(offpath_precompiled ${standard_headers} <fmt/format.h> <spdlog/spdlog.h>)
  offpath_precompiled(offpath_precompiled_programs ${standard_headers} <fmt/format.h> <spdlog/spdlog.h> <nlohmann/json.hpp>
    ${CMAKE_CURRENT_LIST_DIR}/precompiled/command_line.h)
  offpath_precompiled(offpath_precompiled_tests ${standard_headers} <fmt/format.h> <spdlog/spdlog.h> <gtest/gtest.h>)
  target_compile_options(offpath_precompiled_tests PRIVATE -O1)
  target_compile_definitions(offpath_precompiled_tests PRIVATE GTEST_HAS_PTHREAD=1)
  cmake_language(DEFER DIRECTORY ${PROJECT_SOURCE_DIR} CALL offpath_use_precompiled ${PROJECT_SOURCE_DIR})
endif()
