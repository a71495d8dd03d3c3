"""The host's own OpenSHMEM, that of Open MPI over UCX: what it needs on an emulated cluster, and its
programs.

- Its memory hooks are called once more after their component was unloaded, which ends every program with a
crash in shmem_finalize (Open MPI 4.1.4 and 4.1.5); without the component there are none, and UCX has hooks of
its own.
- Nodes of the lab have one kernel: UCX would find that they share memory, and has to be kept to the network.
"""

from offpath.artifacts import Artifacts
from offpath.errors import OffpathError
from offpath.lab import network
from offpath.lab.mpi import Engine

LABEL = "Open MPI's OpenSHMEM"
SETTINGS = {"memory": "^patcher"}


def engine(across_nodes: bool, wide: bool = False) -> Engine:
    """`wide`: it is given the devices' cores too."""
    name, label = ("host+core", f"{LABEL} given the devices' cores") if wide else ("host", LABEL)
    environment = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": network.INTERFACE} if across_nodes else {}
    return Engine(name, label, wide=wide, mca=SETTINGS, environment=environment)


def program(artifacts: Artifacts, name: str) -> str | None:
    """The program made with the host's library; None where there was none when offpath was built."""
    try:
        return str(artifacts.program(f"{name}-host"))
    except OffpathError:
        return None
