"""The OSU micro-benchmarks that papers on devices show, with hosts and devices as MPI ranks: host to host,
device to device, host to device.

Each test runs in the three arrangements in turn, several times. Medians over the runs are compared with those
of host-host.

latency, bw   two ranks on two nodes; in host-dpu, a host and its own device
mbw_mr        `pairs` pairs between the same two places
allgather     as many ranks as nodes, one at each place; host-dpu uses half as many nodes, each with
              host and device
"""

import os
import statistics
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from offpath import console, stats, units
from offpath.codes import Code
from offpath.device_ranks import DEVICE, HOST
from offpath.errors import OffpathError
from offpath.lab import mpi, placement
from offpath.lab.cluster import Cluster, measured
from offpath.lab.device_ranks import Group, Layout, device_command, on_own_cores

PROGRAM = "offpath-bench-osu"
TESTS = ("latency", "bw", "mbw_mr", "allgather")
HOST_HOST, DPU_DPU, HOST_DPU = PAIRS = ("host-host", "dpu-dpu", "host-dpu")
SIZES = tuple(2**power for power in range(23))  # 1 B to 4 MiB


@dataclass(frozen=True)
class OsuSpec:
    tests: list[str]
    sizes: list[int]
    runs: int = 3
    pairs: int = 2
    window: int = 64
    seconds: float = 0.1  # seconds to measure one size of one test in one run

    def check(self, nodes: int) -> None:
        if nodes < 2:
            raise OffpathError(
                Code.OPTION, "these benchmarks need at least two nodes", "use --nodes 2 or more"
            )
        for value, name, low, high in (
            (self.runs, "--runs", 1, 10000),
            (self.pairs, "--pairs", 1, 256),
            (self.window, "--window", 1, 4096),
            (self.seconds, "--seconds", 0.001, 600),
        ):
            if not low <= value <= high:
                raise OffpathError(
                    Code.OPTION, f"{name} {value:g} is out of range", f"use {low:g} to {high:g}"
                )


def places(test: str, pair: str, nodes: int, pairs: int) -> list[Group]:
    """The ranks that take part in a test, in the order of MPI_COMM_WORLD."""
    if test == "allgather":
        if pair == HOST_DPU:
            mixed = [Group(kind, node) for node in range((nodes + 1) // 2) for kind in (HOST, DEVICE)][:nodes]
            return sorted(mixed, key=lambda group: group.kind != HOST)
        return [Group(HOST if pair == HOST_HOST else DEVICE, node) for node in range(nodes)]
    ranks = pairs if test == "mbw_mr" else 1
    first = Group(DEVICE if pair == DPU_DPU else HOST, 0, ranks)
    second = {
        HOST_HOST: Group(HOST, 1, ranks),
        DPU_DPU: Group(DEVICE, 1, ranks),
        HOST_DPU: Group(DEVICE, 0, ranks),
    }[pair]
    return [first, second]


class Osu:
    """One session on one cluster."""

    def __init__(self, cluster: Cluster, spec: OsuSpec):
        self.cluster, self.spec = cluster, spec
        self.cores = placement.physical_cores(os.sched_getaffinity(0))
        self.program = str(cluster.artifacts.program(PROGRAM))

    def measure(self) -> list[dict]:
        """The results of each run: {"test", "pair", "run", "unit", "rows"}."""
        found = []
        progress = console.progress()
        with progress:
            task = progress.add_task("", total=len(self.spec.tests) * self.spec.runs * len(PAIRS))
            for test in self.spec.tests:
                for run in range(self.spec.runs):
                    for pair in PAIRS:
                        progress.update(task, description=f"{test} {pair}")
                        found.append({"test": test, "pair": pair, "run": run} | self._run(test, pair))
                        progress.advance(task)
        return found

    def _run(self, test: str, pair: str) -> dict:
        spec = self.spec
        line = [
            self.program,
            "--test",
            test,
            "--sizes",
            ",".join(map(str, spec.sizes)),
            "--window",
            str(spec.window),
            "--seconds",
            f"{spec.seconds:g}",
            "--json",
            "-",
        ]
        groups = on_own_cores(
            places(test, pair, self.cluster.spec.nodes, spec.pairs), self.cluster.placements, self.cores
        )
        uses_devices = any(group.kind == DEVICE for group in groups)
        layout = Layout(groups, device_command(self.cluster.spec.dpu, line, None) if uses_devices else line)
        result = self.cluster.run(mpi.HOST, line, capture=True, layout=layout)
        said = measured(result, f"{test} {pair}")
        return {"unit": said["unit"], "rows": said["rows"]}


def rows(found: list[dict]) -> list[dict]:
    """Medians over the runs, and their ratios to host-host."""
    values: dict[tuple[str, str, int], list[float]] = {}
    unit_of = {one["test"]: one["unit"] for one in found}
    for one in found:
        for row in one["rows"]:
            values.setdefault((one["test"], one["pair"], row["bytes"]), []).append(row["value"])
    medians = {key: statistics.median(list_) for key, list_ in values.items()}
    return [
        {
            "test": test,
            "pair": pair,
            "bytes": size,
            "value": value,
            "unit": unit_of[test],
            "relative_to_host": value / medians[test, HOST_HOST, size],
        }
        for (test, pair, size), value in sorted(
            medians.items(), key=lambda item: (TESTS.index(item[0][0]), item[0][2], PAIRS.index(item[0][1]))
        )
    ]


def message_rates(measured: list[dict]) -> list[dict]:
    """The other result of mbw_mr: messages per second, which is bytes per second over the size."""
    return [
        {
            "pair": row["pair"],
            "bytes": row["bytes"],
            "messages_per_s": row["value"] * 1e6 / row["bytes"],
            "relative_to_host": row["relative_to_host"],
        }
        for row in measured
        if row["test"] == "mbw_mr"
    ]


def report(cluster: Cluster, spec: OsuSpec, found: list[dict]) -> dict:
    measured = rows(found)
    return {
        "benchmark": "osu",
        "lab": stats.describe_cluster(cluster),
        "environment": stats.environment(),
        "runs": spec.runs,
        "mbw_mr_pairs": spec.pairs,
        "window": spec.window,
        "rows": measured,
        "message_rates": message_rates(measured),
        "samples": found,
    }


def show(found: dict) -> None:
    by_key = {(row["test"], row["bytes"], row["pair"]): row for row in found["rows"]}
    table = Table(
        title=f"OSU tests: {found['lab']['description']}; medians of {found['runs']}", title_justify="left"
    )
    for name in ("test", "size"):
        table.add_column(name, no_wrap=True)
    for name in (HOST_HOST, DPU_DPU, "to host-host", HOST_DPU, "to host-host"):
        table.add_column(name, justify="right")
    previous = None
    for test, size in dict.fromkeys((row["test"], row["bytes"]) for row in found["rows"]):
        if previous not in (None, test):
            table.add_section()
        previous = test
        host, dpu, mixed = (by_key[test, size, pair] for pair in PAIRS)
        table.add_row(
            test,
            units.format_size(size),
            _cell(host),
            _cell(dpu),
            f"{dpu['relative_to_host']:.2f}",
            _cell(mixed),
            f"{mixed['relative_to_host']:.2f}",
        )
    console.out.print(table)
    console.out.print("latency and allgather: less is better. bw and mbw_mr: more is better.")


def _cell(row: dict) -> str:
    digits = max(0, 3 - len(str(int(row["value"]))))
    return f"{row['value']:.{digits}f} {row['unit']}"


def draw(found: dict, path: Path) -> None:
    from offpath import osu_plot  # matplotlib is slow to load

    osu_plot.draw(found, path)
