"""`offpath study minimd-halo`: how much of the communication of ghosts remains exposed.

Ranks of several nodes may share a core, and the time in which one rank waits while another one computes is
not communication. So the exposed time follows from the cores: exposed_s = total_s - computing_s * ranks /
cores. A rank's computing_s is its time on a core outside of calls of MPI and offpath. It includes forces,
neighbours, integration, packing and unpacking. The rest is time in which the ranks' cores were in such calls,
or idle. `link_exposed_s` is exposed_s minus that of the same ranks on one node, whose ghosts cross no link;
so it is the cost of the links. `beyond_one_node_s` is the same difference of total_s.
"""

from collections.abc import Callable

from offpath.minimd.case import (
    BLOCKING,
    HALO,
    OFFLOADED,
    OVERLAPPED,
    POLLED,
    THREADED,
    TOGETHER,
    Case,
    Cores,
    Outcome,
)
from offpath.minimd.measure import Results
from offpath.minimd.spec import Spec
from offpath.minimd.timing import gain

HALO_SCHEMES = (BLOCKING, OVERLAPPED, POLLED, THREADED, OFFLOADED, HALO, TOGETHER)


def halo_cases(spec: Spec) -> list[Case]:
    return [
        spec.case(scheme, atoms, nodes, interval=interval)
        for nodes in spec.every_nodes
        for interval in spec.intervals
        for atoms in spec.atoms
        for scheme in HALO_SCHEMES
    ]


def exposed(case: Case, outcome: Outcome, host_cores: int) -> float | None:
    """Seconds in which the cores of the ranks did not compute."""
    if outcome.computing_s is None:
        return None
    ranks = case.nodes * case.ranks_per_node
    return outcome.total_s - outcome.computing_s * ranks / min(ranks, host_cores)


def halo_rows(spec: Spec, results: Results, cores: Callable[[int], Cores]) -> list[dict]:
    """`cores` returns the cores of that many nodes. `exposed_less_percent` and `link_exposed_less_percent`
    compare with MPI, overlapped."""
    return [_halo_row(case, results, cores(case.nodes).hosts) for case in halo_cases(spec)]


def _halo_row(case: Case, results: Results, host_cores: int) -> dict:
    def seen(scheme: str) -> float | None:
        other = case.of(scheme)
        return results.median(other, lambda outcome: exposed(other, outcome, host_cores))

    mine, base, floor = seen(case.scheme), seen(OVERLAPPED), seen(TOGETHER)
    row = results.row(case)
    found: dict[str, float | None] = {
        "computing_s": results[case].computing_s,
        "exposed_s": mine,
        "exposed_percent": None,
        "exposed_less_percent": None,
        "link_exposed_s": None,
        "link_exposed_less_percent": None,
        "beyond_one_node_s": row["total_s"] - results[case.of(TOGETHER)].total_s,
        "total_less_percent": gain(results[case.of(OVERLAPPED)].total_s, row["total_s"]),
    }
    if mine is not None:
        found["exposed_percent"] = 100 * mine / row["total_s"]
    if mine is not None and base:
        found["exposed_less_percent"] = gain(base, mine)
    if mine is not None and floor is not None:
        found["link_exposed_s"] = mine - floor
        if base and base > floor:
            found["link_exposed_less_percent"] = gain(base - floor, mine - floor)
    return row | found
