# The table of collectives: which file it is, and how to write what follows from it.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
set(OFFPATH_COLLECTIVES ${PROJECT_SOURCE_DIR}/frontends/mpi/collectives/collectives.txt)
# A command of Python that can read it, and what that depends on.
set(OFFPATH_COLLECTIVES_PYTHON
  ${CMAKE_COMMAND} -E env PYTHONPATH=${PROJECT_SOURCE_DIR}/python PYTHONDONTWRITEBYTECODE=1 ${Python3_EXECUTABLE})
set(OFFPATH_COLLECTIVES_DEPENDS ${OFFPATH_COLLECTIVES} ${PROJECT_SOURCE_DIR}/python/offpath/collectives.py)
# Its rows. A change of the table configures again.
file(STRINGS ${OFFPATH_COLLECTIVES} OFFPATH_COLLECTIVE_ROWS REGEX "^[a-z]")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${OFFPATH_COLLECTIVES})
