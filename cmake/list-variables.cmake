# cmake -DSOURCE=DIR -DOUTPUT=FILE -P list-variables.cmake: writes the environment variables OFFPATH_... that
# the sources read, which are those in quotes, and those of the table variables.json, as elements of a C++ array. If nothing is new, the file keeps
# its time.
set(names "")
foreach(folder src frontends apps bench python)
  file(GLOB_RECURSE sources ${SOURCE}/${folder}/*.cpp ${SOURCE}/${folder}/*.h ${SOURCE}/${folder}/*.c ${SOURCE}/${folder}/*.py
    ${SOURCE}/${folder}/variables.json)
  foreach(source ${sources})
    file(STRINGS ${source} lines REGEX "\"OFFPATH_[A-Z0-9_]+\"")
    string(REGEX MATCHALL "\"OFFPATH_[A-Z0-9_]+\"" found "${lines}")
    list(APPEND names ${found})
  endforeach()
endforeach()
list(REMOVE_DUPLICATES names)
list(SORT names)
list(JOIN names ",\n" text)
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT "${old}" STREQUAL "${text},\n")
  file(WRITE ${OUTPUT} "${text},\n")
endif()
