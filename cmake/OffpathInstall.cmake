# cmake --install installs the libraries with their headers, the daemon, what programs with target regions
# need, the benchmarks and applications that the offpath command runs, and the files that find_package(offpath)
# and pkg-config read.
#
# `--component offpathd` installs the daemon alone, with what it starts.
#
# The offpath command is a Python wheel of its own (`make wheel`). A library finds the daemon in ../bin,
# and a program of this project finds its libraries in ../lib, so lib/ has no subfolder for the architecture.
set(CMAKE_INSTALL_LIBDIR lib CACHE STRING "Folder of the libraries below the prefix")
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_RPATH $ORIGIN/../${CMAKE_INSTALL_LIBDIR})
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
if(OFFPATH_UCX_ROOT AND OFFPATH_BUNDLE_UCX)
  # The libraries and UCX's modules go along: the environment that they come from may vanish with the source tree. UCX
  # looks for its modules beside itself, and passes over those whose own libraries are not there.
  set(CMAKE_INSTALL_RPATH_USE_LINK_PATH OFF)
  get_filename_component(_ucx ${UCX_UCP_LIBRARY} DIRECTORY)
  foreach(_part ucm ucp ucs uct)
    file(REAL_PATH ${_ucx}/lib${_part}.so.0 _library)
    install(PROGRAMS ${_library} TYPE LIB RENAME lib${_part}.so.0)
  endforeach()
  install(DIRECTORY ${_ucx}/ucx TYPE LIB USE_SOURCE_PERMISSIONS FILES_MATCHING PATTERN "*.so.0"
    PATTERN "*cuda*" EXCLUDE PATTERN "*gdr*" EXCLUDE PATTERN "*rocm*" EXCLUDE PATTERN "*ze*" EXCLUDE)
elseif(OFFPATH_UCX_ROOT)
  # CMake leaves this path out if it is below the source directory.
  get_filename_component(_ucx ${UCX_UCP_LIBRARY} DIRECTORY)
  if(CMAKE_SYSROOT)
    string(REPLACE "${CMAKE_SYSROOT}" "" _ucx "${_ucx}")
  endif()
  list(APPEND CMAKE_INSTALL_RPATH ${_ucx})
endif()
set(OFFPATH_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/offpath)

# offpath_public(TARGET NAME [COMPONENT]) installs TARGET, and names it offpath::NAME here and for programs
# that find the package. With COMPONENT, only programs that ask find_package for that component get it.
function(offpath_public target name)
  get_target_property(type ${target} TYPE)
  set(component)
  if(type STREQUAL EXECUTABLE)
    add_executable(offpath::${name} ALIAS ${target})
    set(component RUNTIME COMPONENT ${name})
  else()
    add_library(offpath::${name} ALIAS ${target})
  endif()
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  set(set offpath-targets)
  if(ARGC GREATER 2)
    set(set offpath-${ARGV2}-targets)
  endif()
  install(TARGETS ${target} EXPORT ${set} ${component} INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  set_property(GLOBAL APPEND PROPERTY OFFPATH_TARGET_SETS ${set})
endfunction()

# offpath_install_programs(NAME...) installs those of these programs and libraries that this build has.
function(offpath_install_programs)
  foreach(name ${ARGN})
    if(TARGET ${name})
      install(TARGETS ${name})
    endif()
  endforeach()
endfunction()

# To be called once, after all calls of offpath_public.
function(offpath_install_package)
  get_property(sets GLOBAL PROPERTY OFFPATH_TARGET_SETS)
  list(REMOVE_DUPLICATES sets)
  foreach(set ${sets})
    install(EXPORT ${set} NAMESPACE offpath:: DESTINATION ${OFFPATH_PACKAGE_DIR})
  endforeach()
  set(generated ${PROJECT_BINARY_DIR}/package)
  configure_package_config_file(cmake/offpath-config.cmake.in ${generated}/offpath-config.cmake INSTALL_DESTINATION ${OFFPATH_PACKAGE_DIR}
    NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file(${generated}/offpath-config-version.cmake COMPATIBILITY SameMinorVersion)
  configure_file(cmake/offpath.pc.in ${generated}/offpath.pc @ONLY)
  install(FILES ${generated}/offpath-config.cmake ${generated}/offpath-config-version.cmake DESTINATION ${OFFPATH_PACKAGE_DIR})
  install(FILES ${generated}/offpath.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  install(DIRECTORY include/offpath DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h)
endfunction()
