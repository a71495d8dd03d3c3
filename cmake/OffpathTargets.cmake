# Helpers that every room uses, so that a room's CMakeLists.txt only lists its files and the rooms that it
# sees.

function(add_subdirectory_if_present dir)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${dir}/CMakeLists.txt)
    add_subdirectory(${dir})
  endif()
endfunction()

# offpath_compile_alone(SOURCES...): each of these is an object of its own, so that a program can have another one
# in its place.
function(offpath_compile_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# offpath_exports(TARGET MAP): the library TARGET shows the names in the linker's version script MAP, and no other.
function(offpath_exports target map)
  target_link_options(${target} PRIVATE LINKER:--version-script=${CMAKE_CURRENT_SOURCE_DIR}/${map})
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${map})
endfunction()

include(${CMAKE_CURRENT_LIST_DIR}/Rooms.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/OffpathTests.cmake)
