"""Measures what loading offpath costs messages and collectives that stay on the host's path. The same program
runs with and without offpath, in turns.

Two ranks with a core each exchange small messages, within a node and between nodes, and call small
non-blocking collectives. A device is there, but idle. The two programs run side by side, and take turns of
some milliseconds. If the speed of the machine changes, it therefore changes for both.
"""

import statistics
from dataclasses import dataclass
from pathlib import Path

from rich.console import JustifyMethod
from rich.table import Table

from offpath import console, stats, units
from offpath.bench import PROGRAM
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.lab import mpi
from offpath.lab.cluster import Cluster, LabSpec, measured

RATE = "rate"
_WHERE = {"node": "inside a node", "network": "between nodes"}


@dataclass(frozen=True)
class OverheadSpec:
    sizes: list[int]
    runs: int = 5
    batches: int = 30
    batch: int = 200

    def check(self, lab: LabSpec) -> None:
        for value, name, low, high in (
            (self.runs, "--runs", 1, 1000),
            (self.batches, "--batches", 1, 100000),
            (self.batch, "--batch", 1, 10**6),
        ):
            if not low <= value <= high:
                raise OffpathError(Code.OPTION, f"{name} {value} is out of range", f"use {low} to {high}")
        for size in self.sizes:
            if size % 8 or not 8 <= size <= 2**20:
                raise OffpathError(
                    Code.OPTION, f"size {size} is out of range", "use multiples of 8 from 8 to 1M"
                )
        if lab.nodes * lab.ranks_per_node < 2:
            raise OffpathError(
                Code.OPTION,
                "one rank has no partner for messages",
                "use two nodes, or two ranks on each node",
            )


def measure(cluster: Cluster, spec: OverheadSpec) -> list[dict]:
    engines = (mpi.HOST, mpi.OFFPATH)
    turns = cluster.room / "turns"
    taken: dict[str, list[list[dict]]] = {engine.name: [] for engine in engines}
    with console.progress() as progress:
        task = progress.add_task("with and without, in turns", total=spec.runs)
        for run in range(spec.runs):
            turns.write_bytes(b"")
            # The programs take turns at being first, so that neither always follows the other's warmer or
            # colder caches.
            order = engines if run % 2 == 0 else engines[::-1]
            jobs = [
                (engine, _program(cluster, spec, turns, turn, len(order)))
                for turn, engine in enumerate(order)
            ]
            for engine, result in zip(order, cluster.run_together(jobs), strict=True):
                taken[engine.name].append(measured(result, engine.label, verifies=False)["rows"])
            progress.advance(task)
    return rows(taken)


def _program(cluster: Cluster, spec: OverheadSpec, turns: Path, turn: int, programs: int) -> list[str]:
    return [
        str(cluster.artifacts.program(PROGRAM)),
        "messages",
        "--sizes",
        ",".join(map(str, spec.sizes)),
        "--batches",
        str(spec.batches),
        "--batch",
        str(spec.batch),
        "--turns",
        str(turns),
        "--turn",
        str(turn),
        "--programs",
        str(programs),
        "--json",
        "-",
    ]


def rows(taken: dict[str, list[list[dict]]]) -> list[dict]:
    """Medians over all batches of all runs. `ratio` is the median of the ratios of preloaded to plain,
    between each batch and the other program's neighbouring batch. Above 1 is slower for times, and faster for
    rates. `runs` has the median of each run."""
    found = []
    for index, first in enumerate(taken[mpi.HOST.name][0]):
        batches = {
            name: [value for run in runs for value in run[index]["batches"]] for name, runs in taken.items()
        }
        plain, preloaded = (batches[engine.name] for engine in (mpi.HOST, mpi.OFFPATH))
        ratios = [loaded / alone for alone, loaded in zip(plain, preloaded, strict=True)]
        found.append(
            {
                "test": first["test"],
                "where": first["where"],
                "bytes": first["bytes"],
                "plain_mpi": statistics.median(plain),
                "preloaded": statistics.median(preloaded),
                "ratio": statistics.median(ratios),
                "ratio_quartiles": _quartiles(ratios),
                "runs": {
                    key: [run[index]["value"] for run in taken[engine.name]]
                    for key, engine in (("plain_mpi", mpi.HOST), ("preloaded", mpi.OFFPATH))
                },
            }
        )
    return found


def _quartiles(values: list[float]) -> list[float]:
    if len(values) < 2:
        return [values[0]] * 2
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return [low, high]


def report(cluster: Cluster, spec: OverheadSpec, found: list[dict]) -> dict:
    return {
        "benchmark": "overhead",
        "lab": stats.describe_cluster(cluster),
        "environment": stats.environment(),
        "runs": spec.runs,
        "units": {"rate": "messages per second", "others": "seconds"},
        "rows": found,
    }


def show(found: dict) -> None:
    table = Table(
        title=f"overhead: {found['lab']['description']}; medians of {found['runs']}", title_justify="left"
    )
    columns: tuple[tuple[str, JustifyMethod], ...] = (
        ("test", "left"),
        ("where", "left"),
        ("size", "right"),
        ("plain MPI", "right"),
        ("preloaded", "right"),
        ("ratio", "right"),
        ("quartiles", "right"),
    )
    for name, justify in columns:
        table.add_column(name, justify=justify, no_wrap=True)
    previous = None
    for row in found["rows"]:
        if previous not in (None, (row["test"], row["where"])):
            table.add_section()
        previous = (row["test"], row["where"])
        table.add_row(
            row["test"],
            _WHERE[row["where"]],
            units.format_size(row["bytes"]),
            *(_cell(row, key) for key in ("plain_mpi", "preloaded")),
            f"{row['ratio']:.3f}",
            "{:.2f}-{:.2f}".format(*row["ratio_quartiles"]),
        )
    console.out.print(table)


def _cell(row: dict, key: str) -> str:
    return f"{row[key]:,.0f}/s" if row["test"] == RATE else units.format_seconds(row[key])
