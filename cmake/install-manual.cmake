# Runs the command line OFFPATH_MANUAL, whose first word is the Python of the offpath command. Without it, no
# manual pages are installed.
list(GET OFFPATH_MANUAL 0 python)
if(EXISTS ${python})
  message(STATUS "Installing: manual pages")
  execute_process(COMMAND ${OFFPATH_MANUAL} COMMAND_ERROR_IS_FATAL ANY)
else()
  message(WARNING "no manual pages are installed: ${python} is missing, which scripts/setup.sh makes")
endif()
