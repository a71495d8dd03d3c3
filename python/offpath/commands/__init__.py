"""One module for each command of `offpath`. A module defines options and help, and calls other modules for
the work."""
