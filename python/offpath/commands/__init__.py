"""One module per command of `offpath`: options and help here, the work elsewhere."""
