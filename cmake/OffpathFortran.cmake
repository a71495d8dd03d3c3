# offpath_fortran_program(NAME WRAPPER SOURCE DEFINITIONS...) makes a Fortran program with an MPI's compiler
# wrapper. CMake's own support for the language knows only one MPI at a time.
find_program(OFFPATH_MPIFORT NAMES mpifort.openmpi mpifort)
find_program(OFFPATH_MPIFORT_MPICH NAMES mpifort.mpich)
mark_as_advanced(OFFPATH_MPIFORT OFFPATH_MPIFORT_MPICH)

function(offpath_fortran_program name wrapper source)
  set(modules ${CMAKE_CURRENT_BINARY_DIR}/${name}.modules)
  file(MAKE_DIRECTORY ${modules})
  set(options -cpp -O1 -g -ffree-line-length-none -fallow-argument-mismatch -w)
  if(OFFPATH_SANITIZE)
    list(APPEND options -fsanitize=${OFFPATH_SANITIZE})
  endif()
  set(program ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${name})
  file(GLOB headers ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  add_custom_command(OUTPUT ${program}
    COMMAND ${wrapper} ${options} ${ARGN} -J ${modules} ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${program}
    DEPENDS ${source} ${headers} COMMENT "Building Fortran program bin/${name}" VERBATIM)
  add_custom_target(${name} ALL DEPENDS ${program})
endfunction()
