"""Assigns cores to host ranks and devices.

A physical core is assigned as a whole, so that a device never shares the arithmetic units of a host rank:

- enough cores: every node has cores of its own for its ranks, and one for its device;
- fewer: the host ranks of all nodes share the first half of the cores, and the devices share the rest (with
  two cores, one each);
- one core, or placement "shared": everything runs everywhere.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.units import format_cpus, parse_cpus


@dataclass(frozen=True)
class NodePlacement:
    host: tuple[int, ...]
    device: tuple[int, ...]

    @property
    def everything(self) -> tuple[int, ...]:
        return tuple(sorted({*self.host, *self.device}))


def physical_cores(allowed: set[int]) -> list[tuple[int, ...]]:
    """The allowed logical CPUs, grouped by physical core. If there would be only one group, each CPU is a
    group of its own."""
    groups: dict[tuple[int, ...], set[int]] = {}
    for cpu in allowed:
        try:
            siblings = tuple(
                parse_cpus(
                    Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text()
                )
            )
        except (OSError, OffpathError):
            siblings = (cpu,)
        groups.setdefault(siblings, set()).add(cpu)
    if len(groups) < 2:
        return [(cpu,) for cpu in sorted(allowed)]
    return sorted(tuple(sorted(group)) for group in groups.values())


def place(
    nodes: int, ranks_per_node: int, mode: str, cores: list[tuple[int, ...]] | None = None
) -> list[NodePlacement]:
    if mode not in ("split", "shared"):
        raise OffpathError(
            Code.OPTION,
            f"placement {mode!r} is not known",
            "use split (devices on cores of their own) or shared",
        )
    cores = physical_cores(os.sched_getaffinity(0)) if cores is None else cores
    if mode == "shared" or len(cores) == 1:
        everything = tuple(sorted(cpu for core in cores for cpu in core))
        return [NodePlacement(everything, everything)] * nodes
    per_node = len(cores) // nodes
    if per_node >= ranks_per_node + 1:
        return [_node(cores[i * per_node : (i + 1) * per_node], ranks_per_node) for i in range(nodes)]
    half = (len(cores) + 1) // 2
    return [
        NodePlacement(_flat(_share(cores[:half], i, nodes)), _flat(_share(cores[half:], i, nodes)))
        for i in range(nodes)
    ]


def describe(placements: list[NodePlacement]) -> str:
    """One line that says where host ranks and devices run."""
    if all(p == placements[0] for p in placements):
        return _line(placements[0])
    return "; ".join(f"node{i}: {_line(p)}" for i, p in enumerate(placements))


def _line(placement: NodePlacement) -> str:
    if placement.host == placement.device:
        return f"host ranks and devices share {_cores(placement.host)}"
    return f"host ranks on {_cores(placement.host)}, devices on {_cores(placement.device)}"


def _cores(cpus: tuple[int, ...]) -> str:
    return ("core " if len(cpus) == 1 else "cores ") + format_cpus(cpus)


def _node(cores: list[tuple[int, ...]], ranks: int) -> NodePlacement:
    return NodePlacement(_flat(cores[:ranks]), _flat(cores[ranks : ranks + 1]))


def _share(cores: list[tuple[int, ...]], index: int, nodes: int) -> list[tuple[int, ...]]:
    """The part of a pool that belongs to node `index`: a slice of its own if the pool is large enough, else
    one core, in turn."""
    if len(cores) >= nodes:
        size = len(cores) // nodes
        return cores[index * size : (index + 1) * size]
    return [cores[index % len(cores)]]


def _flat(cores: list[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(sorted(cpu for core in cores for cpu in core))
