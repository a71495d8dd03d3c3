# The kinds of tests that ctest runs. Projects in this tree that can also be built on their own include this
# file, too.
include(GoogleTest)
get_filename_component(OFFPATH_TESTS ${CMAKE_CURRENT_LIST_DIR}/../tests ABSOLUTE)

# offpath_quick_tests(): tests in this directory are compiled quickly. What they test is compiled as users get it.
macro(offpath_quick_tests)
  if(OFFPATH_TOGETHER)
    add_compile_options(-O1)
    add_compile_definitions(GTEST_HAS_PTHREAD=1)
  endif()
endmacro()

# offpath_test(NAME [WHOLE] SOURCES a_test.cpp LINKS room... [ENVIRONMENT A=b]) makes a GoogleTest program in build/bin. Each of
# its cases is a test of ctest, named Suite.Case. With WHOLE, the program is a single test with the program's
# name. That is for quick cases that start no processes, because starting the program once for each case would
# take most of the time.
function(offpath_test name)
  cmake_parse_arguments(ARG "WHOLE" "" "SOURCES;LINKS;LABELS;ENVIRONMENT" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  if(NOT TARGET unit-tests)
    add_custom_target(unit-tests)
  endif()
  add_dependencies(unit-tests ${name})
  target_link_libraries(${name} PRIVATE ${ARG_LINKS} GTest::gtest GTest::gtest_main)
  set_target_properties(${name} PROPERTIES UNITY_BUILD "${OFFPATH_TOGETHER}" UNITY_BUILD_BATCH_SIZE 9)
  if(CMAKE_CROSSCOMPILING)
    # Under the emulator the program is a single test, because each start is slow.
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT 240 LABELS "unit;${ARG_LABELS}"
      ENVIRONMENT "OFFPATH_TEST_EMULATOR=${CMAKE_CROSSCOMPILING_EMULATOR};OFFPATH_TEST_EMULATED=1")
  elseif(ARG_WHOLE)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT 300 LABELS "unit;${ARG_LABELS}")
  else()
    # The list of labels is one argument.
    string(REPLACE ";" "\\;" labels "unit;${ARG_LABELS}")
    set(environment)
    if(ARG_ENVIRONMENT)
      set(environment ENVIRONMENT "${ARG_ENVIRONMENT}")
    endif()
    gtest_discover_tests(${name} PROPERTIES TIMEOUT 120 LABELS "${labels}" ${environment} DISCOVERY_TIMEOUT 60)
  endif()
endfunction()

# other_mpi_program(TARGET): only tests with another MPI than Open MPI need it, which `make test-all` runs.
function(other_mpi_program target)
  set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
  if(NOT TARGET other-mpi-tests)
    add_custom_target(other-mpi-tests)
  endif()
  add_dependencies(other-mpi-tests ${target})
endfunction()

# offpath_long_tests(NAME...) marks tests for `make test-long`, which `make test` leaves out. They run with
# more ranks.
function(offpath_long_tests)
  foreach(name ${ARGN})
    if(TEST ${name})
      set_property(TEST ${name} APPEND PROPERTY LABELS long)
    endif()
  endforeach()
endfunction()

# offpath_mpi_test(NAME SOURCES a.cpp LINKS ... RANKS 1 2 3 5 8) makes one test of ctest for each number of
# ranks, under the real mpirun. Exit code 77 means skipped.
function(offpath_mpi_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS;RANKS;ENVIRONMENT;ARGS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINKS} MPI::MPI_CXX)
  if(NOT ARG_RANKS)
    set(ARG_RANKS 1 2 3 5 8)
  endif()
  foreach(n ${ARG_RANKS})
    add_test(NAME ${name}.np${n}
      COMMAND ${OFFPATH_TESTS}/mpirun.sh ${n} ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:${name}> ${ARG_ARGS})
    set_tests_properties(${name}.np${n} PROPERTIES LABELS mpi TIMEOUT 180 SKIP_RETURN_CODE 77
      ENVIRONMENT "${ARG_ENVIRONMENT}" PROCESSORS 2)
  endforeach()
endfunction()

# offpath_one_mpi(DIRECTORY RESULT): the targets of `all` in DIRECTORY and below that are not made with a second MPI.
function(offpath_one_mpi directory result)
  set(found)
  get_property(excluded DIRECTORY ${directory} PROPERTY EXCLUDE_FROM_ALL)
  get_property(targets DIRECTORY ${directory} PROPERTY BUILDSYSTEM_TARGETS)
  get_property(below DIRECTORY ${directory} PROPERTY SUBDIRECTORIES)
  foreach(target ${targets})
    get_target_property(unless_asked_for ${target} EXCLUDE_FROM_ALL)
    if(NOT excluded AND NOT unless_asked_for AND NOT target MATCHES "(^|[-_])(mpich|abi)([-_]|$)")
      list(APPEND found ${target})
    endif()
  endforeach()
  foreach(each ${below})
    offpath_one_mpi(${each} more)
    list(APPEND found ${more})
  endforeach()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# offpath_one_mpi_target(): the target one-mpi, which is all that `make test` builds. What is made with a second MPI
# is built and tested by `make test-all`.
function(offpath_one_mpi_target)
  offpath_one_mpi(${PROJECT_SOURCE_DIR} targets)
  add_custom_target(one-mpi DEPENDS ${targets})
endfunction()
