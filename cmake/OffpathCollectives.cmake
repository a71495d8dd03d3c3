# The table of collectives: its file, and the command that generates files from it.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
set(OFFPATH_COLLECTIVES ${PROJECT_SOURCE_DIR}/frontends/mpi/collectives/collectives.txt)
# The Python command that reads the table, and the files that it depends on.
set(OFFPATH_COLLECTIVES_PYTHON
  ${CMAKE_COMMAND} -E env PYTHONPATH=${PROJECT_SOURCE_DIR}/python PYTHONDONTWRITEBYTECODE=1 ${Python3_EXECUTABLE})
set(OFFPATH_COLLECTIVES_DEPENDS ${OFFPATH_COLLECTIVES} ${PROJECT_SOURCE_DIR}/python/offpath/collectives.py)
# The rows of the table. CMake configures again when the table changes.
file(STRINGS ${OFFPATH_COLLECTIVES} OFFPATH_COLLECTIVE_ROWS REGEX "^[a-z]")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${OFFPATH_COLLECTIVES})
