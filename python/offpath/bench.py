"""Runs offpath-bench-mpi on an emulated cluster: the same measurement on every engine in turn, with medians
over the runs.

Overlap is defined as in the OSU benchmarks. "Compute" is a fixed amount of work for each operation and size.
Timed alone, with all ranks computing, it takes as long as the host's pure communication. Then

    overlap = 100 * (1 - (total - compute) / pure)

with the engine's own pure and compute times.
"""

import statistics
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from offpath import collectives, console, stats, twins, units
from offpath.artifacts import Artifacts
from offpath.lab import mpi
from offpath.lab.cluster import Cluster, measured
from offpath.lab.mpi import Engine

PROGRAM = "offpath-bench-mpi"
# How each operation lays out its buffers. A ring of messages is not a collective, so the table lacks it.
_SHAPES = {row.op: row.shape for row in collectives.read() if row.shape} | {"isend": "ring"}
OPERATIONS = tuple(_SHAPES)
POINT_TO_POINT = "p2p"
_BUDGET_S = 2.0  # seconds of communication and computation in one run of the program


@dataclass(frozen=True)
class BenchSpec:
    operations: list[str]
    sizes: list[int]
    engines: list[Engine]
    runs: int = 3
    iterations: int | None = None


def wire_seconds(operation: str, size: int, nodes: int, ranks_per_node: int, rate: int | None) -> float:
    """The least time that the links allow: the bytes that the busiest node must send, or those that it must
    receive, whichever are more, over the rate.

    Only payload counts. With headers, a link of the lab carries 0.8 % less.
    """
    if rate is None or nodes == 1:
        return 0.0
    others = nodes - 1
    # A ring crosses a node's border at both ends. With two ranks, both neighbours are the same rank.
    borders = 1 if nodes * ranks_per_node == 2 else 2
    per_node = {
        "all_to_all": ranks_per_node**2 * others * size,
        "all_gather": ranks_per_node * others * size,
        "broadcast": size,
        "nothing": 0,
        "gather": ranks_per_node * others * size,
        "scatter": ranks_per_node * others * size,
        "all_reduce": 2 * others * size / nodes,
        "reduce": size,
        "reduce_scatter": ranks_per_node * others * size,
        "scan": size,
        "exscan": size,
        "neighbour_all_gather": borders * size,
        "neighbour_all_to_all": borders * size,
        "ring": size,
    }
    return per_node[_SHAPES[operation]] * 8 / rate


def overlap_percent(pure: float, compute: float, total: float) -> float:
    return max(0.0, 100.0 * (1.0 - (total - compute) / pure)) if pure > 0 else 0.0


def program(artifacts: Artifacts) -> str:
    return str(artifacts.program(PROGRAM))


class Bench:
    """One benchmark session on one cluster."""

    def __init__(self, cluster: Cluster, spec: BenchSpec):
        self.cluster, self.spec = cluster, spec
        self.program = program(cluster.artifacts)
        self.progress = console.progress()

    def overlap(self) -> list[dict]:
        rows = []
        for operation, size in self._points(1 + self.spec.runs * len(self.spec.engines)):
            pure = self._measure(mpi.HOST, "latency", operation, size, iterations=5)["pure_s"]
            iterations = self._iterations(3.5 * pure)
            units_ = self._calibrate(operation, size, pure, iterations)
            self._advance()
            taken: dict[str, list[dict]] = {engine.name: [] for engine in self.spec.engines}
            for engine in self._alternate():
                arguments = ["--work-units", str(units_)]
                taken[engine.name].append(
                    self._measure(engine, "overlap", operation, size, iterations, arguments)
                )
                self._advance(f"{operation} {units.format_size(size)}: {engine.label}")
            rows += [self._overlap_row(operation, size, units_, name, found) for name, found in taken.items()]
        return rows

    def _calibrate(self, operation: str, size: int, pure: float, iterations: int) -> int:
        """The units of work that take as long as the operation, when all ranks compute at the same time in
        the host's placement.

        The program calibrates with uninterrupted computation. But computation that alternates with
        communication is faster, the longer the links' token buckets had time to fill. This function corrects
        for that.
        """
        said = self._measure(
            mpi.HOST,
            "overlap",
            operation,
            size,
            iterations,
            arguments=["--compute-s", f"{max(pure, 1e-6):.9f}"],
        )
        return max(1, round(said["work_units"] * said["pure_s"] / max(said["compute_s"], 1e-9)))

    def _overlap_row(
        self, operation: str, size: int, work_units: int, engine: str, found: list[dict]
    ) -> dict:
        pure, compute, total = (
            statistics.median(one[key] for one in found) for key in ("pure_s", "compute_s", "total_s")
        )
        return {
            "op": operation,
            "bytes": size,
            "engine": engine,
            "pure_s": pure,
            "compute_s": compute,
            "wire_s": self._wire(operation, size),
            "total_s": total,
            "overlap_percent": overlap_percent(pure, compute, total),
            "post_s": statistics.median(one["post_s"] for one in found),
            "work_units": work_units,
            "runs": [
                {key: one[key] for key in ("pure_s", "compute_s", "total_s", "overlap_percent")}
                for one in found
            ],
            "verified": all(one["verified"] for one in found),
        }

    def latency(self) -> list[dict]:
        return self._simple("latency", "pure_s")

    def bandwidth(self) -> list[dict]:
        return self._simple("bandwidth", "bandwidth_Bps")

    def _simple(self, command: str, key: str) -> list[dict]:
        rows = []
        for operation, size in self._points(1 + self.spec.runs * len(self.spec.engines)):
            probe = self._measure(
                mpi.HOST, "latency", "isend" if operation == POINT_TO_POINT else operation, size, iterations=5
            )["pure_s"]
            iterations = self._iterations(probe * (64 if operation == POINT_TO_POINT else 1))
            self._advance()
            taken: dict[str, list[dict]] = {engine.name: [] for engine in self.spec.engines}
            for engine in self._alternate():
                taken[engine.name].append(self._measure(engine, command, operation, size, iterations))
                self._advance(f"{operation} {units.format_size(size)}: {engine.label}")
            for name, found in taken.items():
                values = [one[key] for one in found]
                row = {
                    "op": operation,
                    "bytes": size,
                    "engine": name,
                    key: statistics.median(values),
                    "runs": values,
                }
                if command == "latency":
                    row["wire_s"] = self._wire(operation, size)
                rows.append(row | {"verified": all(one["verified"] for one in found)})
        return rows

    def _measure(
        self,
        engine: Engine,
        command: str,
        operation: str,
        size: int,
        iterations: int,
        arguments: list[str] | None = None,
    ) -> dict:
        line = [
            *twins.command(engine, [self.program]),
            command,
            "--op",
            operation,
            "--bytes",
            str(size),
            "--iterations",
            str(iterations),
            "--warmup",
            str(min(3, iterations)),
            *(arguments or []),
            "--shared-clock",
            "--json",
            "-",
        ]
        result = self.cluster.run(engine, line, capture=True)
        return measured(result, f"{operation} of {units.format_size(size)} on {engine.label}")

    def _points(self, steps: int):
        """Yields every operation and size, and shows a progress bar around them."""
        points = [(operation, size) for operation in self.spec.operations for size in self.spec.sizes]
        with self.progress:
            self._task = self.progress.add_task("", total=len(points) * steps)
            for operation, size in points:
                self.progress.update(
                    self._task, description=f"{operation} {units.format_size(size)}: calibration"
                )
                yield operation, size

    def _advance(self, description: str | None = None) -> None:
        self.progress.update(self._task, advance=1, description=description)

    def _alternate(self):
        for _ in range(self.spec.runs):
            yield from self.spec.engines

    def _iterations(self, seconds_each: float) -> int:
        return self.spec.iterations or max(5, min(200, int(_BUDGET_S / max(seconds_each, 1e-6))))

    def _wire(self, operation: str, size: int) -> float:
        lab = self.cluster.spec
        return wire_seconds(operation, size, lab.nodes, lab.ranks_per_node, lab.link.rate)


def report(cluster: Cluster, spec: BenchSpec, kind: str, rows: list[dict]) -> dict:
    return {
        "benchmark": kind,
        "lab": stats.describe_cluster(cluster),
        "environment": stats.environment(),
        "engines": {engine.name: engine.label for engine in spec.engines},
        "runs": spec.runs,
        "rows": rows,
    }


def show(found: dict) -> None:
    columns = {
        "overlap": [
            ("pure", "pure_s"),
            ("compute", "compute_s"),
            ("wire limit", "wire_s"),
            ("total", "total_s"),
            ("post", "post_s"),
        ],
        "latency": [("pure", "pure_s"), ("wire limit", "wire_s")],
        "bandwidth": [("bandwidth", "bandwidth_Bps")],
    }[found["benchmark"]]
    table = Table(
        title=f"{found['benchmark']}: {found['lab']['description']}; medians of {found['runs']}",
        title_justify="left",
    )
    for name in ("operation", "size", "engine"):
        table.add_column(name, no_wrap=True)
    for name, _ in columns:
        table.add_column(name, justify="right")
    if found["benchmark"] == "overlap":
        table.add_column("overlap", justify="right")
        table.add_column("total/limit", justify="right")
    else:
        table.add_column("to host MPI", justify="right")
    previous = None
    for row in found["rows"]:
        if previous not in (None, (row["op"], row["bytes"])):
            table.add_section()
        previous = (row["op"], row["bytes"])
        cells = [
            row["op"],
            units.format_size(row["bytes"]),
            row["engine"],
            *(_cell(key, row[key]) for _, key in columns),
        ]
        if found["benchmark"] == "overlap":
            limit = max(row["compute_s"], row["wire_s"])
            cells += [f"{row['overlap_percent']:.1f} %", f"{row['total_s'] / limit:.3f}" if limit else "-"]
        else:
            key = columns[0][1]
            host = next(
                (
                    r[key]
                    for r in found["rows"]
                    if r["engine"] == mpi.HOST.name and (r["op"], r["bytes"]) == previous
                ),
                None,
            )
            cells.append(f"{row[key] / host:.3f}" if host else "-")
        table.add_row(*cells)
    console.out.print(table)
    for name, label in found["engines"].items():
        console.out.print(f"{name}: {label}")
    if found["benchmark"] == "overlap":
        console.out.print("limit: the longer of the computation and of what the wire needs for the data")


def _cell(key: str, value: float) -> str:
    return f"{value / 1e6:.1f} MB/s" if key.endswith("_Bps") else units.format_seconds(value)


def draw(found: dict, path: Path) -> None:
    from offpath import plots  # matplotlib is slow to load

    if found["benchmark"] == "overlap":
        plots.overlap(found, path)
    elif found["benchmark"] == "latency":
        plots.series(found, path, "pure_s", "seconds")
    else:
        plots.series(found, path, "bandwidth_Bps", "bytes per second")
