# Libraries that LD_PRELOAD loads before an MPI program, and that wrap its calls of MPI: the tracer and the
# profiler.
#
# offpath_wrappers(NAME VIEW FOLDER SOURCES a.cpp b.cpp [BY_HAND a.cpp] [FORTRAN b.cpp] [LINKS target...]) Makes libNAME.so for
# Open MPI and libNAME-mpich.so for MPICH, from the same sources and from the calls that the generate.py of the
# folder that calls it makes. BY_HAND are sources with calls that generate.py leaves out. VIEW is a folder of
# the build from which the sources include their headers. FORTRAN are sources with which the front end's bindings
# for Fortran become part of the library for Open MPI, whose own bindings call PMPI_ in C.
function(offpath_wrappers name)
  if(TARGET MPI::MPI_CXX)
    offpath_wrappers_for(${name} openmpi MPI::MPI_CXX "${MPI_CXX_INCLUDE_DIRS}" ${ARGN})
  endif()
  if(TARGET MPICH::MPI_CXX)
    offpath_wrappers_for(${name}-mpich mpich MPICH::MPI_CXX "${OFFPATH_MPICH_INCLUDE_DIR}" ${ARGN})
  endif()
endfunction()

function(offpath_wrappers_for target mpi mpi_target includes)
  cmake_parse_arguments(ARG "" "VIEW" "SOURCES;BY_HAND;FORTRAN;LINKS" ${ARGN})
  find_file(OFFPATH_MPI_H_${mpi} mpi.h PATHS ${includes} NO_DEFAULT_PATH REQUIRED)
  mark_as_advanced(OFFPATH_MPI_H_${mpi})
  set(header ${OFFPATH_MPI_H_${mpi}})
  set(tables ${PROJECT_SOURCE_DIR}/frontends/mpi/calls)
  set(generator ${CMAKE_CURRENT_SOURCE_DIR}/generate.py)
  list(TRANSFORM ARG_BY_HAND PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/${mpi})
  file(MAKE_DIRECTORY ${generated})
  set(files ${generated}/wrapped_calls.cpp ${generated}/exports.map)
  add_custom_command(OUTPUT ${files}
    COMMAND ${OFFPATH_COLLECTIVES_PYTHON} ${generator} ${mpi} ${tables}/calls.txt ${OFFPATH_COLLECTIVES} ${header} ${files} ${ARG_BY_HAND}
    DEPENDS ${generator} ${tables}/wrappers.py ${tables}/generate.py ${tables}/table.py ${tables}/calls.txt
            ${OFFPATH_COLLECTIVES_DEPENDS} ${header} ${ARG_BY_HAND} VERBATIM)
  add_library(${target} SHARED ${ARG_SOURCES} ${PROJECT_SOURCE_DIR}/frontends/sanitizers/link_order.cpp ${files})
  if(ARG_FORTRAN AND mpi STREQUAL openmpi)
    target_sources(${target} PRIVATE ${ARG_FORTRAN} $<TARGET_OBJECTS:offpath-mpi-fortran>)
  endif()
  target_include_directories(${target} PRIVATE ${ARG_VIEW} ${PROJECT_SOURCE_DIR}/include)
  target_compile_options(${target} PRIVATE -ftls-model=initial-exec)
  target_link_libraries(${target} PRIVATE ${ARG_LINKS} ${mpi_target} ${CMAKE_DL_LIBS})
  target_link_options(${target} PRIVATE LINKER:--version-script=${generated}/exports.map)
  set_target_properties(${target} PROPERTIES LINK_DEPENDS ${generated}/exports.map)
  install(TARGETS ${target})
endfunction()
