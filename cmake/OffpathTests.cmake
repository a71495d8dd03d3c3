# The kinds of tests, as ctest knows them. Projects of this tree that are also built by themselves include this file, too.
include(GoogleTest)
get_filename_component(OFFPATH_TESTS ${CMAKE_CURRENT_LIST_DIR}/../tests ABSOLUTE)

# offpath_test(NAME [WHOLE] SOURCES a_test.cpp LINKS room...): a GoogleTest program in build/bin, each case known to ctest as Suite.Case. WHOLE: the
# program is one entry of ctest, named as the program. That is for quick cases that start nothing, most of whose time would be that of their starts.
function(offpath_test name)
  cmake_parse_arguments(ARG "WHOLE" "" "SOURCES;LINKS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINKS} GTest::gtest GTest::gtest_main)
  if(CMAKE_CROSSCOMPILING)
    # One process under the emulator instead of one for each test: its start is the slow part.
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT 240 LABELS "unit;${ARG_LABELS}"
      ENVIRONMENT "OFFPATH_TEST_EMULATOR=${CMAKE_CROSSCOMPILING_EMULATOR};OFFPATH_TEST_EMULATED=1")
  elseif(ARG_WHOLE)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT 300 LABELS "unit;${ARG_LABELS}")
  else()
    gtest_discover_tests(${name} PROPERTIES TIMEOUT 120 LABELS "unit;${ARG_LABELS}" DISCOVERY_TIMEOUT 60)
  endif()
endfunction()

# offpath_long_tests(NAME...): tests of `make test-long`, which `make test` leaves out: more ranks of what it runs with fewer.
function(offpath_long_tests)
  foreach(name ${ARGN})
    if(TEST ${name})
      set_property(TEST ${name} APPEND PROPERTY LABELS long)
    endif()
  endforeach()
endfunction()

# offpath_mpi_test(NAME SOURCES a.cpp LINKS ... RANKS 1 2 3 5 8): one ctest entry per number of ranks, under the real mpirun.
# Exit code 77 means skipped.
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
