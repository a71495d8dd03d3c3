"""`offpath bench shmem`: OpenSHMEM's puts, gets and atomic operations between two PEs, on the host's library
and on offpath in turn.

It measures within a node and between two nodes, with data in the symmetric heap and static data. Only the two
PEs run. The host's library may also use the devices' cores. Its passive PE has to help with each operation,
and so need not wait for the core of the active PE.
"""

import statistics
from dataclasses import dataclass

from rich.table import Table

from offpath import console, oshmem, stats, units
from offpath.codes import Code
from offpath.device_ranks import HOST
from offpath.errors import OffpathError
from offpath.lab import network
from offpath.lab.cluster import Cluster, measured
from offpath.lab.device_ranks import Group, Layout
from offpath.lab.mpi import Engine

PROGRAM = "offpath-bench-shmem"
TRANSFERS = ("put", "get")
ATOMICS = ("fetch_add", "add", "compare_swap")
OPERATIONS = TRANSFERS + ATOMICS
MEMORIES = ("heap", "static")
INTRA, INTER = PLACES = ("intra", "inter")
ENGINES = ("host", "offpath")
SIZES = (8, 64, 512, 2**12, 2**15, 2**16, 2**18, 2**20, 2**22)
_MEASURED = ("latency_s", "bandwidth_Bps", "messages_per_s", "overlap_percent")


@dataclass(frozen=True)
class ShmemSpec:
    operations: list[str]
    memories: list[str]
    places: list[str]
    sizes: list[int]
    engines: list[str]
    runs: int = 3
    seconds: float = 0.05
    window: int = 64

    def check(self, nodes: int) -> None:
        for names, known, what in (
            (self.operations, OPERATIONS, "operation"),
            (self.memories, MEMORIES, "memory"),
            (self.places, PLACES, "place"),
            (self.engines, ENGINES, "engine"),
        ):
            units.check_known(names, what, known)
        for value, name, low, high in (
            (self.runs, "--runs", 1, 10000),
            (self.window, "--window", 1, 4096),
            (self.seconds, "--seconds", 1e-4, 60),
            *((size, "--sizes", 1, SIZES[-1]) for size in self.sizes),
        ):
            if not low <= value <= high:
                raise OffpathError(
                    Code.OPTION, f"{name} {value:g} is out of range", f"use {low:g} to {high:g}"
                )
        if INTER in self.places and nodes < 2:
            raise OffpathError(
                Code.OPTION, "measurements between nodes need two nodes", "use --nodes 2, or --where intra"
            )


class ShmemBench:
    """One session on one cluster."""

    def __init__(self, cluster: Cluster, spec: ShmemSpec):
        self.cluster, self.spec = cluster, spec
        self.programs = {"offpath": str(cluster.artifacts.program(PROGRAM))}
        if (host := oshmem.program(cluster.artifacts, PROGRAM)) is not None:
            self.programs["host"] = host
        self.engines = [name for name in spec.engines if name in self.programs]
        if "host" in spec.engines and "host" not in self.engines:
            console.warn(Code.NOTHING_TO_DO, "the host has no OpenSHMEM, so there is nothing to compare with")

    def measure(self) -> list[dict]:
        found = []
        progress = console.progress()
        with progress:
            task = progress.add_task("", total=len(self.spec.places) * self.spec.runs * len(self.engines))
            for where in self.spec.places:
                for _ in range(self.spec.runs):
                    for engine in self.engines:
                        progress.update(task, description=f"{where}: {engine}")
                        found += [
                            row | {"where": where, "engine": engine} for row in self._run(where, engine)
                        ]
                        progress.advance(task)
        return found

    def _run(self, where: str, name: str) -> list[dict]:
        spec = self.spec
        line = [
            self.programs[name],
            "--ops",
            ",".join(spec.operations),
            "--memory",
            ",".join(spec.memories),
            "--sizes",
            ",".join(map(str, spec.sizes)),
            "--seconds",
            f"{spec.seconds:g}",
            "--window",
            str(spec.window),
            "--before",
            str(self._before(where)),
            "--json",
            "-",
        ]
        engine = engine_of(name, where == INTER and self.cluster.namespaced)
        result = self.cluster.run(
            engine, line, capture=True, layout=Layout(self._groups(where, engine), line)
        )
        return measured(result, f"{name}, {where}")["rows"]

    def _before(self, where: str) -> int:
        """The bytes that empty the token buckets at both ends of a cable. Without this, a message shorter
        than a bucket would find it full or empty by chance. A real link has no such burst of two
        milliseconds."""
        link = self.cluster.spec.link
        return (
            min(2 * network.burst_bytes(link), SIZES[-1])
            if where == INTER and self.cluster.namespaced and link.rate is not None
            else 0
        )

    def _groups(self, where: str, engine: Engine) -> list[Group]:
        cpus = [place.everything if engine.wide else place.host for place in self.cluster.placements]
        if where == INTRA:
            return [Group(HOST, 0, 2, cpus[0])]
        return [Group(HOST, node, 1, cpus[node]) for node in (0, 1)]


def engine_of(name: str, across_nodes: bool) -> Engine:
    if name == "offpath":
        return Engine("offpath", "offpath", offload=True, front_end=False)
    return oshmem.engine(across_nodes, wide=True)


def rows(found: list[dict]) -> list[dict]:
    """Medians over the runs. A value that an operation does not have is null: atomic operations have neither
    bandwidth nor overlap."""
    values: dict[tuple, list[dict]] = {}
    for row in found:
        values.setdefault((row["op"], row["memory"], row["where"], row["bytes"], row["engine"]), []).append(
            row
        )
    made = []
    for (op, memory, where, size, engine), runs in values.items():
        medians = {
            key: statistics.median(run[key] for run in runs) if key in runs[0] else None for key in _MEASURED
        }
        made.append(
            {
                "op": op,
                "memory": memory,
                "where": where,
                "bytes": size,
                **medians,
                "engine": engine,
                "runs": [{key: run[key] for key in _MEASURED if key in run} for run in runs],
            }
        )
    order = {name: index for index, name in enumerate((*OPERATIONS, *MEMORIES, *PLACES, *ENGINES))}
    return sorted(
        made,
        key=lambda row: (
            order[row["op"]],
            order[row["where"]],
            order[row["memory"]],
            row["bytes"],
            order[row["engine"]],
        ),
    )


def report(cluster: Cluster, spec: ShmemSpec, found: list[dict]) -> dict:
    return {
        "benchmark": "shmem",
        "lab": stats.describe_cluster(cluster),
        "environment": stats.environment(),
        "engines": {name: engine_of(name, False).label for name in spec.engines},
        "runs": spec.runs,
        "window": spec.window,
        "rows": rows(found),
    }


def show(found: dict) -> None:
    table = Table(
        title=f"OpenSHMEM: {found['lab']['description']}; medians of {found['runs']}", title_justify="left"
    )
    for name in ("operation", "where", "memory", "size", "engine"):
        table.add_column(name, no_wrap=True)
    for name in ("latency", "to host", "bandwidth", "to host", "rate", "overlap"):
        table.add_column(name, justify="right")
    previous = None
    hosts = {point_of(row): row for row in found["rows"] if row["engine"] == "host"}
    for row in found["rows"]:
        if previous not in (None, point_of(row)):
            table.add_section()
        previous = point_of(row)
        host = hosts.get(previous)
        bandwidth, overlap = row["bandwidth_Bps"], row["overlap_percent"]
        table.add_row(
            row["op"],
            row["where"],
            row["memory"],
            units.format_size(row["bytes"]),
            row["engine"],
            _latency(row["latency_s"]),
            f"{row['latency_s'] / host['latency_s']:.3f}" if host else "-",
            f"{bandwidth / 1e6:.1f} MB/s" if bandwidth is not None else "-",
            f"{bandwidth / host['bandwidth_Bps']:.3f}" if host and bandwidth is not None else "-",
            f"{row['messages_per_s']:.3g}/s",
            f"{overlap:.1f} %" if overlap is not None else "-",
        )
    console.out.print(table)
    for name, label in found["engines"].items():
        console.out.print(f"{name}: {label}")


def point_of(row: dict) -> tuple:
    return row["op"], row["where"], row["memory"], row["bytes"]


def _latency(seconds: float) -> str:
    return f"{seconds * 1e9:.1f} ns" if seconds < 1e-6 else units.format_seconds(seconds)
