"""What a run has left behind: files in shared memory, sockets, keys, and namespaces. Processes are counted by
`lab/strays.py`."""

import os
import re
from pathlib import Path

from offpath.lab.cluster import Cluster

SHARED_MEMORY = Path("/dev/shm")
# A daemon's own files, which stay while it lives; a successor replaces those of a killed one.
_OF_DAEMONS = re.compile(r"\.(sock|pid|port|log|err)$")
# What the host's MPI leaves where one of its ranks is killed is not ours to count.
_OF_THE_HOST = re.compile(
    r"^(vader_segment|sm_segment|osc_|shmem_|ompi|openmpi-sessions|pmix|prte|psm|ucx_shm|mpich|hydra)"
)


def now(cluster: Cluster, session: Path) -> set[str]:
    """What is there: to be compared with what was there before a run."""
    found = {f"file {path.name} in /dev/shm" for path in SHARED_MEMORY.iterdir() if path != cluster.room}
    found = {name for name in found if not _OF_THE_HOST.match(name.split()[1])}
    for folder, _, files in os.walk(session):
        found |= {f"file {os.path.join(folder, name)}" for name in files if not _OF_DAEMONS.search(name)}
    namespaces = _namespaces()
    expected = {_namespace(os.getpid())} | {
        _namespace(holder.pid) for node in cluster.nodes for holder in node.holders()
    }
    found |= {f"network namespace {name}" for name in namespaces - expected}
    for node in cluster.nodes:
        found |= {f"socket {name} on {node.name}" for name in _abstract_sockets(node.pid)}
    return found


def _namespace(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return ""


def _namespaces() -> set[str]:
    return {_namespace(int(name)) for name in os.listdir("/proc") if name.isdigit()} - {""}


def _abstract_sockets(pid: int) -> set[str]:
    """The names in the abstract namespace that are ours."""
    try:
        lines = Path(f"/proc/{pid}/net/unix").read_text().splitlines()
    except OSError:
        return set()
    names = {line.split()[-1] for line in lines[1:] if len(line.split()) > 7}
    return {name for name in names if name.startswith("@") and "offpath" in name}
