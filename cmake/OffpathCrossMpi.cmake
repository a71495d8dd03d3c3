# The Open MPI of the root that is built against, as the targets that FindMPI would make. FindMPI asks the
# host's compiler wrappers, which know nothing of another architecture. MPI programs are left out if the root
# has no Open MPI.
set(_openmpi ${CMAKE_SYSROOT}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openmpi)
if(EXISTS ${_openmpi}/lib/libmpi.so)
  foreach(language C CXX)
    add_library(MPI::MPI_${language} INTERFACE IMPORTED)
    target_include_directories(MPI::MPI_${language} SYSTEM INTERFACE ${_openmpi}/include)
    target_compile_definitions(MPI::MPI_${language} INTERFACE OMPI_SKIP_MPICXX)
    target_link_libraries(MPI::MPI_${language} INTERFACE ${_openmpi}/lib/libmpi.so)
  endforeach()
endif()
