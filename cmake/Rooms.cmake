# Rooms: the static libraries of src/, each of which sees only the rooms that it declares.
#
# Headers are included as "room/file.h". A target does not see src/ itself, but a folder of links in the build for each room that
# it declares, and for those that these declare. That the declarations are no wider than the includes is checked by
# scripts/check_layers.py.

# offpath_room(NAME [ALONE] SOURCES a.cpp b.cpp LINKS room... [FOLDERS sub...])
# Makes the static library offpath_NAME from the folder that calls it; INTERFACE where there are no sources. A folder some of whose
# subfolders are rooms of their own lists the others as FOLDERS, or says ALONE if there are none: only its own headers and these folders are seen.
function(offpath_room name)
  cmake_parse_arguments(ARG "ALONE" "" "SOURCES;LINKS;FOLDERS" ${ARGN})
  if(ARG_SOURCES)
    add_library(offpath_${name} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
  else()
    add_library(offpath_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  set(alone "")
  if(ARG_ALONE)
    set(alone ALONE)
  endif()
  offpath_view(${name} ${alone} FOLDERS ${ARG_FOLDERS})
  target_include_directories(offpath_${name} ${scope} ${PROJECT_BINARY_DIR}/rooms/${name} ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(offpath_${name} ${scope} ${ARG_LINKS})
endfunction()

# The folder of links. ALONE, or FOLDERS given: the folder's own headers and these subfolders; else all of the folder.
function(offpath_view name)
  cmake_parse_arguments(ARG "ALONE" "" "FOLDERS" ${ARGN})
  set(view ${PROJECT_BINARY_DIR}/rooms/${name})
  file(RELATIVE_PATH here ${PROJECT_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR})
  file(REMOVE_RECURSE ${view})
  if(NOT ARG_ALONE AND NOT ARG_FOLDERS)
    get_filename_component(above ${view}/${here} DIRECTORY)
    file(MAKE_DIRECTORY ${above})
    file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${view}/${here} SYMBOLIC)
    return()
  endif()
  file(MAKE_DIRECTORY ${view}/${here})
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  foreach(path ${headers})
    get_filename_component(file ${path} NAME)
    file(CREATE_LINK ${path} ${view}/${here}/${file} SYMBOLIC)
  endforeach()
  foreach(folder ${ARG_FOLDERS})
    file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR}/${folder} ${view}/${here}/${folder} SYMBOLIC)
  endforeach()
endfunction()
