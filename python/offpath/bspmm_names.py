"""What the reports of `offpath study bspmm` call the variants and the phases of a run."""

VARIANTS = ("mpi-rma", "shmem", "shmem-nbi", "offload", "compute-offload")
HOSTED = VARIANTS[:3]  # what a library without devices can do
PHASES = ("claim_s", "get_s", "copy_s", "compute_s", "accumulate_s", "finish_s")
