# Rooms are the static libraries of src/. Each sees only the rooms that it declares.
#
# Headers are included as "room/file.h". A target's include path does not contain src/ itself. It has a folder
# of links in the build for each room that the target declares, and for each room that those declare.
# scripts/check_layers.py checks that the declarations are no wider than the includes.

# offpath_room(NAME [ALONE] SOURCES a.cpp b.cpp LINKS room... [FOLDERS sub...]) Makes the static library
# offpath_NAME from the folder that calls it, or an INTERFACE library if there are no sources. If some
# subfolders of that folder are rooms of their own, FOLDERS lists the other subfolders, or ALONE says that
# there are none. Only the folder's own headers and these subfolders are visible then.
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

# Makes the folder of links. With ALONE or FOLDERS, it shows the folder's own headers and the given
# subfolders, otherwise the whole folder.
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
