"""Compares staged with direct messages: the cost if a device cannot access its host's memory.

Both are offpath's basic primitives between two nodes over the same links, in one session, in turn.

direct   the device shares the host's operating system and maps its memory; data cross only the network
staged   data go through buffers of the device: with --dpu remote or aarch64 over the host-device link,
         with --dpu local through a shared area that a thread of the process copies from and to

Beside them stands what the links themselves can do, by UCX's own perf test over each link in the same
session.
"""

import statistics
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from offpath import console, stats, units
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.lab import perftest
from offpath.lab.cluster import Cluster, LabSpec, measured
from offpath.lab.mpi import Engine

PROGRAM = "offpath-bench-primitives"
DIRECT, STAGED = "direct", "staged"
SIZES = tuple(4**power for power in range(12))  # 1 B to 4 MiB
_KEYS = ("latency_s", "bandwidth_Bps")
_MEMORY = {DIRECT: "offpath", STAGED: "heap"}
_EXPECTED = {DIRECT: ("map", "xgvmi"), STAGED: ("staged",)}


@dataclass(frozen=True)
class StagingSpec:
    sizes: list[int]
    runs: int = 3
    seconds: float = 0.1  # seconds to measure each value in one run
    raw: bool = True  # also measure the links themselves

    def check(self, lab: LabSpec) -> None:
        if lab.nodes != 2 or lab.ranks_per_node != 1:
            raise OffpathError(
                Code.OPTION,
                "this benchmark runs on two nodes with one rank each",
                "leave --nodes and --ranks-per-node out",
            )
        for value, name, low, high in (
            (self.runs, "--runs", 1, 10000),
            (self.seconds, "--seconds", 0.001, 60),
        ):
            if not low <= value <= high:
                raise OffpathError(
                    Code.OPTION, f"{name} {value:g} is out of range", f"use {low:g} to {high:g}"
                )


def engines(lab: LabSpec) -> list[Engine]:
    staged = "through the device's buffers" + (", over the host-device link" if lab.remote else "")
    return [
        Engine(DIRECT, "the device maps the host's memory", offload=True, local=True),
        Engine(
            STAGED, staged, offload=True, environment={} if lab.remote else {"OFFPATH_BACK_END": "staged"}
        ),
    ]


def measure(cluster: Cluster, spec: StagingSpec) -> tuple[list[dict], dict]:
    """One row for each path and size, and the links' own bandwidth. The values are medians over the runs,
    which alternate."""
    program = str(cluster.artifacts.program(PROGRAM))
    paths = engines(cluster.spec)
    taken: dict[str, list[dict]] = {path.name: [] for path in paths}
    links = _links(cluster) if spec.raw and cluster.namespaced and perftest.find() else {}
    raw: dict[str, list[float]] = {name: [] for name in links}
    with console.progress() as progress:
        task = progress.add_task("", total=spec.runs * (len(paths) + len(links)))
        for run in range(spec.runs):
            for path in paths:
                progress.update(task, description=f"run {run + 1} of {spec.runs}: {path.name}")
                arguments = [
                    "--memory",
                    _MEMORY[path.name],
                    "--seconds",
                    str(spec.seconds),
                    "--sizes",
                    ",".join(map(str, spec.sizes)),
                ]
                taken[path.name].append(_run(cluster, path, [program, *arguments, "--json", "-"]))
                progress.advance(task)
            for name, bandwidth in links.items():
                progress.update(task, description=f"run {run + 1} of {spec.runs}: the {name} link itself")
                raw[name].append(bandwidth())
                progress.advance(task)
    return rows(taken), {
        name: {"bandwidth_Bps": statistics.median(values), "runs": values} for name, values in raw.items()
    }


def _links(cluster: Cluster) -> dict:
    lab = cluster.spec
    links = {"network": lambda: perftest.of_network(cluster.nodes, lab.link.rate)}
    if lab.remote:
        links["host-device"] = lambda: perftest.of_host_device_link(cluster.nodes[0], lab.pcie.rate)
    return links


def rows(taken: dict[str, list[dict]]) -> list[dict]:
    found = []
    for path, runs in taken.items():
        for index, first in enumerate(runs[0]["rows"]):
            values = {key: [run["rows"][index][key] for run in runs] for key in _KEYS}
            found.append(
                {"path": path, "bytes": first["bytes"]}
                | {key: statistics.median(values[key]) for key in _KEYS}
                | {"back_end": runs[0]["back_end"], "window": first["window"], "runs": values}
            )
    return found


def _run(cluster: Cluster, path: Engine, command: list[str]) -> dict:
    result = cluster.run(path, command, capture=True)
    said = measured(result, f"the {path.name} path")
    if said["back_end"] not in _EXPECTED[path.name]:
        raise OffpathError(
            Code.WRONG_RESULTS,
            f"what should be {path.name} was done by back end {said['back_end']}",
            "see `offpath info`",
            code=1,
        )
    return said


def slowest_link(lab: LabSpec) -> int | None:
    """The most bits per second that staged data can reach, which is the rate of the slower of the
    two links."""
    rates = [rate for rate in (lab.link.rate, lab.pcie.rate if lab.remote else None) if rate is not None]
    return min(rates, default=None)


def raw_limit(found: dict) -> float | None:
    """Bytes per second that UCX's perf test reached on the slower of the two links."""
    return min((link["bandwidth_Bps"] for link in found["raw_links"].values()), default=None)


def report(cluster: Cluster, spec: StagingSpec, found: list[dict], raw: dict) -> dict:
    return {
        "benchmark": "staging",
        "lab": stats.describe_cluster(cluster),
        "environment": stats.environment(),
        "paths": {path.name: path.label for path in engines(cluster.spec)},
        "slowest_link_Bps": rate / 8 if (rate := slowest_link(cluster.spec)) else None,
        "raw_links": raw,
        "runs": spec.runs,
        "rows": found,
    }


def show(found: dict) -> None:
    by_size: dict[int, dict[str, dict]] = {}
    for row in found["rows"]:
        by_size.setdefault(row["bytes"], {})[row["path"]] = row
    table = Table(
        title=f"staging: {found['lab']['description']}; medians of {found['runs']}", title_justify="left"
    )
    for name in ("size", "latency direct", "staged", "ratio", "bandwidth direct", "staged", "ratio"):
        table.add_column(name, justify="right")
    limits = {
        name: limit
        for name, limit in (("staged/link", found["slowest_link_Bps"]), ("staged/raw", raw_limit(found)))
        if limit
    }
    for name in limits:
        table.add_column(name, justify="right")
    for size, paths in by_size.items():
        direct, staged = paths[DIRECT], paths[STAGED]
        cells = [units.format_size(size)]
        cells += [
            units.format_seconds(direct["latency_s"]),
            units.format_seconds(staged["latency_s"]),
            f"{staged['latency_s'] / direct['latency_s']:.2f}",
        ]
        cells += [f"{row['bandwidth_Bps'] / 1e6:.3g} MB/s" for row in (direct, staged)] + [
            f"{staged['bandwidth_Bps'] / direct['bandwidth_Bps']:.2f}"
        ]
        table.add_row(
            *cells, *(f"{100 * staged['bandwidth_Bps'] / limit:.0f} %" for limit in limits.values())
        )
    console.out.print(table)
    for name, label in found["paths"].items():
        console.out.print(f"{name}: {label}")
    console.out.print("latency: half a round trip; bandwidth: windows of messages one way")
    if limits:
        console.out.print(
            "link: the slower link's rate, headers included; raw: what UCX's perf test reached on the slower"
            " link"
        )
    for name, link in found["raw_links"].items():
        console.out.print(f"raw, {name} link: {link['bandwidth_Bps'] / 1e6:.4g} MB/s")


def draw(found: dict, path: Path) -> None:
    from offpath import plots  # matplotlib is slow to load

    plots.staging(found, path)
