"""What loading offpath costs messages and collectives that stay on the host's path: the same program with and without, in turn.

Two ranks with a core each exchange small messages, on one node and between nodes, and call small non-blocking collectives. A device is there and idle.
"""

import json as jsonlib
import statistics
from dataclasses import dataclass
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from offpath import console, metrics, stats, units
from offpath.bench import PROGRAM
from offpath.errors import OffpathError
from offpath.lab import mpi
from offpath.lab.cluster import Cluster, LabSpec

RATE = "rate"
_WHERE = {"node": "inside a node", "network": "between nodes"}


@dataclass(frozen=True)
class OverheadSpec:
    sizes: list[int]
    runs: int = 5
    batches: int = 30
    batch: int = 200

    def check(self, lab: LabSpec) -> None:
        for value, name, low, high in ((self.runs, "--runs", 1, 1000), (self.batches, "--batches", 1, 100000), (self.batch, "--batch", 1, 10**6)):
            if not low <= value <= high:
                raise OffpathError(f"{name} {value} is out of range", f"use {low} to {high}")
        for size in self.sizes:
            if size % 8 or not 8 <= size <= 2**20:
                raise OffpathError(f"size {size} is out of range", "use multiples of 8 from 8 to 1M")
        if lab.nodes * lab.ranks_per_node < 2:
            raise OffpathError("one rank has nobody to talk to", "use two nodes, or two ranks a node")


def measure(cluster: Cluster, spec: OverheadSpec) -> list[dict]:
    program = [str(cluster.artifacts.program(PROGRAM)), "messages", "--sizes", ",".join(map(str, spec.sizes)),
               "--batches", str(spec.batches), "--batch", str(spec.batch), "--json", "-"]
    engines = (mpi.HOST, mpi.OFFPATH)
    taken: dict[str, list[list[dict]]] = {engine.name: [] for engine in engines}
    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console.err, transient=True
    ) as progress:
        task = progress.add_task("", total=spec.runs * len(engines))
        for run in range(spec.runs):
            # The order changes, so that neither always runs on the warmer machine.
            for engine in engines if run % 2 == 0 else engines[::-1]:
                progress.update(task, description=f"run {run + 1} of {spec.runs}: {engine.label}")
                result = cluster.run(engine, program, capture=True)
                said = metrics.last_json_object(result.stdout)
                if result.exit_code != 0 or said is None:
                    tail = "\n".join([*(result.stderr or result.stdout).strip().splitlines()[-15:], *result.complaints])
                    raise OffpathError(f"{engine.label} failed with code {result.exit_code}\n{tail}".rstrip(), code=result.exit_code or 1)
                taken[engine.name].append(said["rows"])
                progress.advance(task)
    return rows(taken)


def rows(taken: dict[str, list[list[dict]]]) -> list[dict]:
    """Medians over the runs. ratio: preloaded over plain; more than 1 is slower for times, faster for rates."""
    found = []
    for index, first in enumerate(taken[mpi.HOST.name][0]):
        values = {name: [run[index]["value"] for run in runs] for name, runs in taken.items()}
        plain, preloaded = (statistics.median(values[engine.name]) for engine in (mpi.HOST, mpi.OFFPATH))
        found.append(
            {"test": first["test"], "where": first["where"], "bytes": first["bytes"], "plain_mpi": plain, "preloaded": preloaded,
             "ratio": preloaded / plain, "runs": {"plain_mpi": values[mpi.HOST.name], "preloaded": values[mpi.OFFPATH.name]}}
        )
    return found


def report(cluster: Cluster, spec: OverheadSpec, found: list[dict]) -> dict:
    return {
        "benchmark": "overhead", "lab": stats.describe_cluster(cluster), "environment": stats.environment(), "runs": spec.runs,
        "units": {"rate": "messages per second", "others": "seconds"}, "rows": found,
    }


def show(found: dict) -> None:
    table = Table(title=f"overhead: {found['lab']['description']}; medians of {found['runs']}", title_justify="left")
    for name, justify in (("test", "left"), ("where", "left"), ("size", "right"), ("plain MPI", "right"), ("preloaded", "right"), ("ratio", "right")):
        table.add_column(name, justify=justify, no_wrap=True)
    previous = None
    for row in found["rows"]:
        if previous not in (None, (row["test"], row["where"])):
            table.add_section()
        previous = (row["test"], row["where"])
        table.add_row(row["test"], _WHERE[row["where"]], units.format_size(row["bytes"]), *(_cell(row, key) for key in ("plain_mpi", "preloaded")), f"{row['ratio']:.3f}")
    console.out.print(table)


def _cell(row: dict, key: str) -> str:
    return f"{row[key]:,.0f}/s" if row["test"] == RATE else units.format_seconds(row[key])


def write(found: dict, json: Path | None) -> None:
    if json is not None:
        json.write_text(jsonlib.dumps(found, indent=2) + "\n")
        console.note(f"wrote {json}")
