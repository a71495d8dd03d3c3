"""OpenMP target regions on a device beside LLVM's own host plug-in, which runs them in the program's process.

One program (bench/openmp/bench_target.c) measures both in turn, in one session of an emulated node. LLVM's
plug-in copies with memcpy and calls functions directly, so it shows what crossing to a device costs. Beside
the transfers stand memcpy and, for remote devices, the same bytes over a plain TCP connection.

A second program (bench/openmp/bench_target_mpi.c) measures MPI messages of two ranks: between their hosts,
between their devices from inside regions, and from a host to a device and back.
"""

import statistics
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from offpath import console, openmp, stats, units
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.lab import mpi, network
from offpath.lab.cluster import Cluster, LabSpec, measured
from offpath.lab.mpi import Engine

PROGRAM = "bench-target"
MPI_PROGRAM = "bench-target-mpi-openmpi"
MPI_ENDS = {
    "host_host": "host and host",
    "device_device": "device and device",
    "host_device": "host and device",
}
_TRANSFERS = ("map_to", "map_from", "memcpy", "raw_to", "raw_from")
_REGION_S = 1e-3  # CPU time of each region of nowait_1ms, in seconds
_LABELS = {
    "offpath": "regions on the device",
    "llvm-host": "LLVM's own plug-in, in the program's process",
}


@dataclass(frozen=True)
class TargetSpec:
    runs: int = 3
    repeats: int = 500  # repetitions of each measurement in a run

    def check(self, lab: LabSpec) -> None:
        if lab.nodes not in (1, 2) or lab.ranks_per_node != 1:
            raise OffpathError(
                Code.OPTION,
                "this benchmark runs one program on one node, and MPI on at most two nodes",
                "use --nodes 1 or 2, and leave --ranks-per-node out",
            )
        for value, name, low, high in (
            (self.runs, "--runs", 1, 1000),
            (self.repeats, "--repeats", 10, 10000),
        ):
            if not low <= value <= high:
                raise OffpathError(Code.OPTION, f"{name} {value} is out of range", f"use {low} to {high}")


def engines(program: Path) -> list[Engine]:
    # Debian's libomptarget does not look for plug-ins beside itself.
    plugins = {"LD_LIBRARY_PATH": str(openmp.llvm_folder(program))}
    return [
        Engine("offpath", _LABELS["offpath"], offload=True, front_end=False),
        Engine("llvm-host", _LABELS["llvm-host"], offload=False, environment=plugins),
    ]


def measure(cluster: Cluster, spec: TargetSpec) -> list[dict]:
    """One row for each test, amount and engine. The values are medians over the runs, which alternate. MPI's
    two ranks run on the single node, or on one each of the two nodes."""
    alone, pair = cluster.first(1), cluster.first(cluster.spec.nodes, 2 // cluster.spec.nodes)
    command = [str(cluster.artifacts.program(PROGRAM)), str(spec.repeats)]
    with_mpi = [str(cluster.artifacts.program(MPI_PROGRAM)), str(spec.repeats)]
    raw = [*command, network.pcie_address(0, of_device=False)] if cluster.spec.remote else command
    device, host = engines(Path(command[0]))
    jobs = [
        (alone, device, device, raw),
        (alone, host, host, command),
        (pair, device, mpi.OFFPATH, with_mpi),
    ]
    taken: list[list[list[dict]]] = [[] for _ in jobs]
    with console.progress() as progress:
        task = progress.add_task("", total=spec.runs * len(jobs))
        for run in range(spec.runs):
            for (part, shown, engine, line), found in zip(jobs, taken, strict=True):
                what = f"{shown.label}, {Path(line[0]).name}"
                progress.update(task, description=f"run {run + 1} of {spec.runs}: {what}")
                said = measured(part.run(engine, line, capture=True), what, verifies=False)
                if said["devices"] < 1:
                    raise OffpathError(
                        Code.WRONG_RESULTS, f"{what}: OpenMP found no device", "see `offpath info`", code=1
                    )
                found.append(said["rows"])
                progress.advance(task)
    place = cluster.placements[0]
    cpus = {device.name: len(place.device), host.name: len(place.host)}
    return [
        row
        for (_, shown, _, _), found in zip(jobs, taken, strict=True)
        for row in rows(shown.name, found, cpus[shown.name])
    ]


def rows(engine: str, runs: list[list[dict]], cpus: int) -> list[dict]:
    """`cpus` is the number of CPUs on which the engine's regions run."""
    found: list[dict] = []
    for index, first in enumerate(runs[0]):
        times = [run[index]["seconds"] for run in runs]
        amount = {key: first[key] for key in ("bytes", "regions") if key in first}
        row = {"test": first["test"]} | amount | {"engine": engine, "seconds": statistics.median(times)}
        if first["test"] in _TRANSFERS or first["test"].startswith("mpi_bandwidth_"):
            row["bandwidth_Bps"] = first["bytes"] / row["seconds"]
        if first["test"] == "nowait_1ms":
            row["ideal_seconds"] = _REGION_S * max(1.0, first["regions"] / cpus)
            row["to_ideal"] = row["seconds"] / row["ideal_seconds"]
        row["best_seconds"] = min(run[index]["best_seconds"] for run in runs)
        found.append(row | {"runs": times})
    seconds = {(row["test"], row.get("bytes")): row["seconds"] for row in found}
    for row in found:
        if row["test"] in ("map_to", "map_from"):
            raw = row["test"].replace("map", "raw")
            for key, reference in (("of_memcpy", "memcpy"), ("of_raw_link", raw)):
                if beside := seconds.get((reference, row["bytes"])):
                    row[key] = beside / row["seconds"]
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
    for name in ("test", "amount", *found["engines"], "ratio", "of offpath"):
        table.add_column(name, justify="left" if name in ("test", "of offpath") else "right")
    for offpath in (row for row in found["rows"] if row["engine"] == "offpath"):
        peer = _peer(found, offpath)
        amount = units.format_size(offpath["bytes"]) if "bytes" in offpath else str(offpath["regions"])
        table.add_row(
            offpath["test"],
            amount,
            units.format_seconds(offpath["seconds"]),
            units.format_seconds(peer["seconds"]) if peer else "",
            f"{offpath['seconds'] / peer['seconds']:.2f}" if peer else "",
            _judged(offpath),
        )
    console.out.print(table)
    for name, label in found["engines"].items():
        console.out.print(f"{name}: {label}")


def _judged(row: dict) -> str:
    """Compares a transfer with memcpy or the bare link, and parallel regions with the time that their cores
    allow."""
    if "of_raw_link" in row:
        return f"{100 * row['of_raw_link']:.0f} % of the link's rate"
    if "of_memcpy" in row:
        return f"{100 * row['of_memcpy']:.0f} % of memcpy's rate"
    if "to_ideal" in row:
        return f"{row['to_ideal']:.2f} of the ideal time"
    if "bandwidth_Bps" in row:
        return f"{row['bandwidth_Bps'] / 1e6:.4g} MB/s"
    return ""


def _peer(found: dict, offpath: dict) -> dict | None:
    same = ("test", "bytes", "regions")
    return next(
        (
            row
            for row in found["rows"]
            if row["engine"] == "llvm-host" and all(row.get(key) == offpath.get(key) for key in same)
        ),
        None,
    )


def draw(found: dict, path: Path) -> None:
    """Draws the bandwidth of mapping, regions side by side, and MPI messages."""
    from offpath import bench_target_plot  # matplotlib is slow to load

    bench_target_plot.draw(found, MPI_ENDS, path)
