"""`offpath soak`: verified programs on an emulated cluster, in which daemons, links and ranks fail."""
