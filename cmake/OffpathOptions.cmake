# Build-wide settings: language level, warnings, sanitizers, output folders.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
# Programs are compiled as libraries are, so that both can use the same precompiled header.
set(CMAKE_POSITION_INDEPENDENT_CODE OFF)
add_compile_options(-fPIC)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
option(OFFPATH_DEBUG_INFO "Build with debug information" OFF)
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2")
if(OFFPATH_DEBUG_INFO)
  add_compile_options(-g)
endif()

set(OFFPATH_SANITIZE "" CACHE STRING "Sanitizers to build with: address,undefined or thread")
option(OFFPATH_DEVICE_ONLY "Build what runs on a device: offpathd, the libraries, the unit tests, programs for device ranks" OFF)
option(OFFPATH_BUILD_TESTS "Build the tests with everything else" ON)
option(OFFPATH_FUZZ "Build the libFuzzer targets (needs clang)" OFF)

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Werror -fvisibility=hidden
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> $<$<COMPILE_LANGUAGE:CXX>:-fvisibility-inlines-hidden>)

if(OFFPATH_SANITIZE)
  add_compile_options(-fsanitize=${OFFPATH_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=${OFFPATH_SANITIZE})
  if(OFFPATH_SANITIZE STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # ThreadSanitizer does not see fences. offpath's fences order accesses of different processes, and the
    # sanitizer sees only one of these anyway.
    add_compile_options(-Wno-tsan)
  endif()
endif()

# Reading headers takes longer than compiling most files. So the sources of a target are compiled together, and
# the headers of libraries are compiled once (OffpathPrecompiled.cmake). `make clang` does without, so that it finds
# a source that lacks an include, and names that hide others (-Wshadow). Sources that are compiled together see each
# other's unnamed namespaces: a name there has one meaning in the whole target, and no source has a using-directive
# at global scope that other sources of the target could not have.
option(OFFPATH_TOGETHER "Compile sources of a target together, with precompiled headers" ON)
if(OFFPATH_TOGETHER)
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 16)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # GCC 12 warns of wrong copies in its own std::string (GCC bug 105329), and a precompiled header hides from it
    # that they are in a header of the system.
    foreach(warning subobject-linkage array-bounds restrict stringop-overflow stringop-overread)
      add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-${warning}>)
    endforeach()
  endif()
endif()
if(CMAKE_UNITY_BUILD)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-shadow>)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # ccache shares objects between checkouts: it takes paths relative to the source directory, and debug
  # information contains relative paths.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()
