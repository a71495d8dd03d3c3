"""The names of variants and phases in the reports of `offpath study bspmm`."""

VARIANTS = ("mpi-rma", "shmem", "shmem-nbi", "offload", "compute-offload")
HOSTED = VARIANTS[:3]  # the variants that a library without devices can run
PHASES = ("claim_s", "get_s", "copy_s", "compute_s", "accumulate_s", "finish_s")
