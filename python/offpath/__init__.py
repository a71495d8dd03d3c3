"""The offpath command: run MPI programs with offload, emulate clusters, measure."""
