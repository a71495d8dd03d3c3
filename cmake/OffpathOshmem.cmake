# Finds the host's own OpenSHMEM, that of Open MPI, as the target OSHMEM::OSHMEM. offpath's OpenSHMEM is
# compared with it, and portable programs are built with it once more. Without it, these are left out.
if(NOT CMAKE_CROSSCOMPILING)
  find_path(OFFPATH_OSHMEM_INCLUDE_DIR shmem.h HINTS ${MPI_C_INCLUDE_DIRS} ${MPI_C_HEADER_DIR}
    PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openmpi/include NO_DEFAULT_PATH)
  find_library(OFFPATH_OSHMEM_LIBRARY oshmem)
  mark_as_advanced(OFFPATH_OSHMEM_INCLUDE_DIR OFFPATH_OSHMEM_LIBRARY)
endif()
if(OFFPATH_OSHMEM_INCLUDE_DIR AND OFFPATH_OSHMEM_LIBRARY)
  add_library(OSHMEM::OSHMEM INTERFACE IMPORTED)
  target_include_directories(OSHMEM::OSHMEM SYSTEM INTERFACE ${OFFPATH_OSHMEM_INCLUDE_DIR})
  target_link_libraries(OSHMEM::OSHMEM INTERFACE ${OFFPATH_OSHMEM_LIBRARY})
  message(STATUS "OpenSHMEM of the host: ${OFFPATH_OSHMEM_LIBRARY}")
else()
  message(STATUS "OpenSHMEM of the host was not found: nothing to compare ours with")
endif()
