"""The offpath command: run MPI programs with offload, emulate clusters, measure."""

__version__ = "0.1.0"
