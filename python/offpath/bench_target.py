"""OpenMP target regions on a device beside LLVM's own host plug-in, which runs them in the program's process.

One program (bench/openmp/bench_target.c) measures both in turn, in one session of an emulated node. LLVM's
plug-in copies with memcpy and calls functions directly, so it shows what crossing to a device costs.
"""

import statistics
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
from rich.table import Table

from offpath import console, openmp, plots, stats, units
from offpath.errors import OffpathError
from offpath.lab.cluster import Cluster, LabSpec, measured
from offpath.lab.mpi import Engine

PROGRAM = "bench-target"
_LABELS = {
    "offpath": "regions on the device",
    "llvm-host": "LLVM's own plug-in, in the program's process",
}


@dataclass(frozen=True)
class TargetSpec:
    runs: int = 3
    repeats: int = 500  # of each measurement in a run

    def check(self, lab: LabSpec) -> None:
        if lab.nodes != 1 or lab.ranks_per_node != 1:
            raise OffpathError(
                "this benchmark is of one node with one program", "leave --nodes and --ranks-per-node out"
            )
        for value, name, low, high in (
            (self.runs, "--runs", 1, 1000),
            (self.repeats, "--repeats", 10, 10000),
        ):
            if not low <= value <= high:
                raise OffpathError(f"{name} {value} is out of range", f"use {low} to {high}")


def engines(program: Path) -> list[Engine]:
    # Debian's libomptarget does not look for plug-ins beside itself.
    plugins = {"LD_LIBRARY_PATH": str(openmp.llvm_folder(program))}
    return [
        Engine("offpath", _LABELS["offpath"], offload=True, front_end=False),
        Engine("llvm-host", _LABELS["llvm-host"], offload=False, environment=plugins),
    ]


def measure(cluster: Cluster, spec: TargetSpec) -> list[dict]:
    """One row a test, amount and engine: medians over the runs, which alternate."""
    program = cluster.artifacts.program(PROGRAM)
    command = [str(program), str(spec.repeats)]
    both = engines(program)
    taken: dict[str, list[list[dict]]] = {engine.name: [] for engine in both}
    with console.progress() as progress:
        task = progress.add_task("", total=spec.runs * len(both))
        for run in range(spec.runs):
            for engine in both:
                progress.update(task, description=f"run {run + 1} of {spec.runs}: {engine.name}")
                said = measured(cluster.run(engine, command, capture=True), engine.label, verifies=False)
                if said["devices"] < 1:
                    raise OffpathError(
                        f"{engine.label}: OpenMP found no device", "see `offpath info`", code=1
                    )
                taken[engine.name].append(said["rows"])
                progress.advance(task)
    return rows(taken)


def rows(taken: dict[str, list[list[dict]]]) -> list[dict]:
    found = []
    for engine, runs in taken.items():
        for index, first in enumerate(runs[0]):
            times = [run[index]["seconds"] for run in runs]
            amount = {key: first[key] for key in ("bytes", "regions") if key in first}
            row = {"test": first["test"]} | amount | {"engine": engine, "seconds": statistics.median(times)}
            if first["test"] in ("map_to", "map_from", "memcpy"):
                row["bandwidth_Bps"] = first["bytes"] / row["seconds"]
            row["best_seconds"] = min(run[index]["best_seconds"] for run in runs)
            found.append(row | {"runs": times})
    return found


def report(cluster: Cluster, spec: TargetSpec, found: list[dict]) -> dict:
    return {
        "benchmark": "target",
        "lab": stats.describe_cluster(cluster),
        "environment": stats.environment(),
        "engines": _LABELS,
        "runs": spec.runs,
        "rows": found,
    }


def show(found: dict) -> None:
    table = Table(title=f"target regions: {found['lab']['description']}; medians", title_justify="left")
    for name in ("test", "amount", *found["engines"], "ratio"):
        table.add_column(name, justify="left" if name == "test" else "right")
    for offpath in (row for row in found["rows"] if row["engine"] == "offpath"):
        peer = _peer(found, offpath)
        amount = units.format_size(offpath["bytes"]) if "bytes" in offpath else str(offpath["regions"])
        table.add_row(
            offpath["test"],
            amount,
            *(units.format_seconds(row["seconds"]) for row in (offpath, peer)),
            f"{offpath['seconds'] / peer['seconds']:.2f}",
        )
    console.out.print(table)
    for name, label in found["engines"].items():
        console.out.print(f"{name}: {label}")


def _peer(found: dict, offpath: dict) -> dict:
    same = ("test", "bytes", "regions")
    return next(
        row
        for row in found["rows"]
        if row["engine"] == "llvm-host" and all(row.get(key) == offpath.get(key) for key in same)
    )


def draw(found: dict, path: Path) -> None:
    """Bandwidth of mapping by size, and the time of regions that run side by side."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
    colors = {"offpath": plots.color("offpath"), "llvm-host": plots.color("host")}
    for engine, color in colors.items():
        mine = [row for row in found["rows"] if row["engine"] == engine]
        for test, style in (("map_to", "o-"), ("map_from", "s--")):
            chosen = [row for row in mine if row["test"] == test]
            left.plot(
                [row["bytes"] for row in chosen],
                [row["bandwidth_Bps"] / 1e9 for row in chosen],
                style,
                color=color,
                label=f"{engine}: {test.replace('_', ' ')}",
            )
        chosen = [row for row in mine if row["test"] == "nowait_1ms"]
        right.plot(
            [row["regions"] for row in chosen],
            [row["seconds"] * 1e3 for row in chosen],
            "o-",
            color=color,
            label=engine,
        )
    regions = sorted({row["regions"] for row in found["rows"] if row["test"] == "nowait_1ms"})
    cpus = max(1, len(found["lab"].get("device_cpus", [])) or 1)
    ideal = [-(-count // cpus) for count in regions]
    right.plot(regions, ideal, ":", color="black", label="ideal on the device's cores")
    left.set(title="update to and from", xscale="log", yscale="log", xlabel="bytes", ylabel="GB/s")
    right.set(title="nowait regions of 1 ms", xlabel="regions", ylabel="ms")
    left.legend(fontsize=8)
    right.legend(fontsize=8)
    plots.finish(figure, found, path)
