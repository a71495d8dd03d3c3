# Finds MPICH, beside the MPI that FindMPI finds, as the target MPICH::MPI_CXX. Without it, everything for
# MPICH is left out.
find_path(OFFPATH_MPICH_INCLUDE_DIR mpi.h PATHS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/mpich /usr/include/mpich NO_DEFAULT_PATH)
find_library(OFFPATH_MPICH_LIBRARY mpich)
find_program(OFFPATH_MPICH_MPIEXEC NAMES mpiexec.mpich)
mark_as_advanced(OFFPATH_MPICH_INCLUDE_DIR OFFPATH_MPICH_LIBRARY OFFPATH_MPICH_MPIEXEC)
if(OFFPATH_MPICH_INCLUDE_DIR AND OFFPATH_MPICH_LIBRARY)
  add_library(MPICH::MPI_CXX INTERFACE IMPORTED)
  target_include_directories(MPICH::MPI_CXX SYSTEM INTERFACE ${OFFPATH_MPICH_INCLUDE_DIR})
  target_compile_definitions(MPICH::MPI_CXX INTERFACE MPICH_SKIP_MPICXX)
  target_link_libraries(MPICH::MPI_CXX INTERFACE ${OFFPATH_MPICH_LIBRARY})
  message(STATUS "MPICH: ${OFFPATH_MPICH_LIBRARY}")
else()
  message(STATUS "MPICH was not found: no liboffpath-mpi-mpich.so")
endif()

# An MPI library with the standard's ABI. At run time, any other such library can take its place.
set(OFFPATH_MPI_ABI_ROOT "" CACHE PATH "Prefix of an MPI library with the standard ABI (lib/libmpi_abi.so); empty: none")
if(OFFPATH_MPI_ABI_ROOT)
  add_library(MPI_ABI::MPI_CXX INTERFACE IMPORTED)
  target_include_directories(MPI_ABI::MPI_CXX SYSTEM INTERFACE ${OFFPATH_MPI_ABI_ROOT}/include)
  target_compile_definitions(MPI_ABI::MPI_CXX INTERFACE MPI_ABI)
  target_link_libraries(MPI_ABI::MPI_CXX INTERFACE ${OFFPATH_MPI_ABI_ROOT}/lib/libmpi_abi.so)
endif()
