"""The studies of times: how fast hosts and devices are, where the time goes, what devices gain."""

from offpath.minimd.case import (
    ALL,
    BALANCED,
    DEVICES,
    HALO,
    HOSTS,
    OFFLOADED,
    PAPER,
    RUNTIME_BALANCED,
    RUNTIME_PAPER,
    SPLIT,
    TUNNEL,
    Case,
)
from offpath.minimd.measure import Results
from offpath.minimd.spec import Spec

OFFPATH_SCHEMES = (HOSTS, ALL, PAPER, BALANCED)
RUNTIME_SCHEMES = (RUNTIME_PAPER, RUNTIME_BALANCED)
MANUAL_SCHEMES = (HOSTS, ALL, TUNNEL, SPLIT, OFFLOADED, HALO)


def gain(base_s: float, other_s: float) -> float:
    """Eq. 2 of the IPDPS 2022 paper, in per cent."""
    return 100 * (base_s - other_s) / base_s


def _grid(spec: Spec, schemes: tuple[str, ...], **more) -> list[Case]:
    return [
        spec.case(scheme, atoms, nodes, interval=interval, **more)
        for nodes in spec.every_nodes
        for interval in spec.intervals
        for atoms in spec.atoms
        for scheme in schemes
    ]


# Figure 6: all devices alone compared with all hosts alone.


def slowdown_cases(spec: Spec) -> list[Case]:
    return [
        case
        for slowness in spec.device_slowness
        for case in _grid(spec, (HOSTS, DEVICES), device_slowness=slowness, wide=True)
    ]


def slowdown_rows(spec: Spec, results: Results) -> list[dict]:
    rows = []
    for slowness in spec.device_slowness:
        cases = _grid(spec, (HOSTS, DEVICES), device_slowness=slowness, wide=True)
        for hosts, devices in zip(cases[::2], cases[1::2], strict=True):
            rows.append(
                results.row(devices)
                | {
                    "hosts_total_s": results[hosts].total_s,
                    "slowdown": results[devices].total_s / results[hosts].total_s,
                }
            )
    return rows


# Figures 7 and 12: where the hosts' time goes, and the upper bound of what could be gained if all
# communication vanished.


def breakdown_cases(spec: Spec) -> list[Case]:
    return _grid(spec, (HOSTS,), wide=True)


def breakdown_rows(spec: Spec, results: Results) -> list[dict]:
    rows = []
    for case in breakdown_cases(spec):
        row = results.row(case)
        rows.append(
            row
            | {
                f"{part}_percent": 100 * row[f"{part}_s"] / row["total_s"]
                for part in ("force", "neigh", "comm", "other")
            }
        )
    return rows


def bound_rows(spec: Spec, results: Results) -> list[dict]:
    return [row | {"bound_percent": row["comm_percent"]} for row in breakdown_rows(spec, results)]


# Figure 8: n devices, one on each node, compared with one host.


def devices_cases(spec: Spec) -> list[Case]:
    return [
        case
        for interval in spec.intervals
        for atoms in spec.atoms
        for case in (
            *(spec.case(HOSTS, atoms, 1, interval=interval, threads=threads) for threads in spec.threads),
            *(
                spec.case(
                    DEVICES, atoms, nodes, interval=interval, threads=threads, ranks_per_node=1, wide=True
                )
                for nodes in spec.every_nodes
                for threads in spec.device_threads
            ),
        )
    ]


def devices_rows(spec: Spec, results: Results) -> list[dict]:
    """In a row for devices, `threads` is the number of threads of each device."""
    hosts: dict[tuple[int, int], float] = {}
    rows = []
    for case in devices_cases(spec):
        key = (case.atoms, case.interval)
        if case.scheme == HOSTS:
            hosts[key] = min(hosts.get(key, float("inf")), results[case].total_s)
            continue
        rows.append(
            results.row(case)
            | {
                "devices": case.nodes,
                "host_total_s": hosts[key],
                "speedup_over_host": hosts[key] / results[case].total_s,
            }
        )
    return rows


# Figure 11: the gain of the off-path algorithm, compared with giving the devices' cores to the hosts.


def offpath_cases(spec: Spec) -> list[Case]:
    schemes = (*OFFPATH_SCHEMES, *(RUNTIME_SCHEMES if spec.runtime else ()))
    return [
        case for slowness in spec.device_slowness for case in _grid(spec, schemes, device_slowness=slowness)
    ]


def offpath_rows(spec: Spec, results: Results) -> list[dict]:
    """`improvement_percent` is the median over the turns. `best_improvement_percent` compares the fastest
    runs. `bound_percent` is Figure 12's bound for the same setting, from the same runs. `above_bound_percent`
    is the gain beyond that bound."""
    return [_offpath_row(case, results) for case in offpath_cases(spec)]


def _offpath_row(case: Case, results: Results) -> dict:
    base = results[case.of(HOSTS)]
    improvement = results.over_turns(lambda run: gain(run(case.of(HOSTS)).total_s, run(case).total_s))
    bound = 100 * base.comm_s / base.total_s
    return results.row(case) | {
        "base_total_s": base.total_s,
        "improvement_percent": improvement,
        "best_improvement_percent": gain(results.best(case.of(HOSTS)), results.best(case)),
        "bound_percent": bound,
        "above_bound_percent": None if improvement is None else improvement - bound,
    }


# Section 4 of the manual offload: both of its halves, and the baselines. The rows vary the number of atoms,
# and at the last size the computational intensity.


def manual_cases(spec: Spec) -> list[Case]:
    by_atoms = _grid(spec, MANUAL_SCHEMES, intensity=spec.intensities[0])
    by_intensity = [
        spec.case(scheme, spec.atoms[-1], nodes, intensity=intensity)
        for nodes in spec.every_nodes
        for intensity in spec.intensities[1:]
        for scheme in MANUAL_SCHEMES
    ]
    return [*by_atoms, *by_intensity]


def manual_rows(spec: Spec, results: Results) -> list[dict]:
    """The time saved compared with hosts only, in per cent: of the total, of forces and of communication."""
    rows = []
    for case in manual_cases(spec):
        base, own = results[case.of(HOSTS)], results[case]
        rows.append(
            results.row(case)
            | {
                "total_less_percent": gain(base.total_s, own.total_s),
                "force_less_percent": gain(base.force_s, own.force_s),
                "comm_less_percent": gain(base.comm_s, own.comm_s) if base.comm_s > 0 else 0.0,
            }
        )
    return rows
