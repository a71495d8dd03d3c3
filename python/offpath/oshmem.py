"""The host's own OpenSHMEM, that of Open MPI over UCX: the settings that it needs on an emulated cluster, and
its programs.

- Open MPI 4.1.4 and 4.1.5 call the memory hooks once more after they have unloaded the hooks' component, so
  every program crashes in shmem_finalize. The settings leave that component out; UCX has memory hooks of its
  own.
- All nodes of the lab have one kernel. UCX would detect that they share memory, so the settings allow it only
  the network.
"""

from offpath.artifacts import Artifacts
from offpath.errors import OffpathError
from offpath.lab import network
from offpath.lab.mpi import Engine

LABEL = "Open MPI's OpenSHMEM"
SETTINGS = {"memory": "^patcher"}


def engine(across_nodes: bool, wide: bool = False) -> Engine:
    """The engine for this library. `wide`: it may use the devices' cores, too."""
    name, label = ("host+core", f"{LABEL} given the devices' cores") if wide else ("host", LABEL)
    environment = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": network.INTERFACE} if across_nodes else {}
    return Engine(name, label, wide=wide, mca=SETTINGS, environment=environment)


def program(artifacts: Artifacts, name: str) -> str | None:
    """The program built with the host's library. None if the host had no such library when
    offpath was built."""
    try:
        return str(artifacts.program(f"{name}-host"))
    except OffpathError:
        return None
