# build/bin/offpath runs the Python command of the source tree against this build. It uses the project's own
# Python environment, which scripts/setup.sh makes. That environment need not exist yet when this build is
# configured.
set(OFFPATH_PYTHON ${CMAKE_SOURCE_DIR}/.venv/bin/python CACHE FILEPATH "Python that runs the offpath command")
configure_file(${CMAKE_CURRENT_LIST_DIR}/offpath.in ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/offpath
  @ONLY FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
# build/bin/offpath-clang and offpath-clang++ run clang for programs with target regions.
configure_file(${CMAKE_CURRENT_LIST_DIR}/offpath-clang.in ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/offpath-clang
  @ONLY FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
file(CREATE_LINK offpath-clang ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/offpath-clang++ SYMBOLIC)
install(PROGRAMS ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/offpath-clang ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/offpath-clang++ TYPE BIN)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/frontends/openmp/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/offpath-regions)
# Manual pages are written when the build is installed, from the help of the command and of the daemon.
if(NOT CMAKE_CROSSCOMPILING)
  install(CODE "set(OFFPATH_MANUAL
    \"${OFFPATH_PYTHON}\" \"${CMAKE_SOURCE_DIR}/scripts/man_pages.py\"
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/man\" \"${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/offpathd\")")
  install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/install-manual.cmake)
endif()
