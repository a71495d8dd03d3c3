"""`offpath study bspmm`: all variants of block-sparse matrix multiplication, on the host's own libraries and
on offpath, side by side.

The contenders run in turn, several times, and medians are compared. Two limits are shown beside the times.
Wire: the payload that the busiest node has to send or receive, with the units as they were really shared out,
over the rate of its link. Compute: the time of all products, at the speed of a single one, over the cores
that compute.
"""

import statistics
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from offpath import console, oshmem, stats, units
from offpath.artifacts import Artifacts
from offpath.bspmm_names import HOSTED, PHASES, VARIANTS
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.lab import mpi
from offpath.lab.cluster import Cluster, measured
from offpath.lab.device_ranks import Layout, everywhere
from offpath.lab.mpi import Engine

PROGRAM = "bspmm"
BLOCKING, NON_BLOCKING, OFFLOADED = "shmem", "shmem-nbi", "offload"
SHMEM = Engine("offpath", "offpath", offload=True, front_end=False)


@dataclass(frozen=True)
class BspmmSpec:
    meshes: list[int]
    tile: int
    runs: int = 3
    iterations: int = 1
    variants: tuple[str, ...] = VARIANTS
    sparsity: float | None = None
    seed: int = 1
    baselines: bool = False  # also run the host's libraries with the devices' cores

    def check(self) -> None:
        for value, name, low, high in (
            (self.tile, "--tile", 1, 8192),
            (self.runs, "--runs", 1, 1000),
            (self.iterations, "--iterations", 1, 1000),
            (self.seed, "--seed", 0, 2**63),
            *((mesh, "--mesh", 1, 1024) for mesh in self.meshes),
        ):
            if not low <= value <= high:
                raise OffpathError(Code.OPTION, f"{name} {value} is out of range", f"use {low} to {high}")
        if self.sparsity is not None and not 0 <= self.sparsity < 1:
            raise OffpathError(
                Code.OPTION, f"--sparsity {self.sparsity:g} is out of range", "use 0 or more, less than 1"
            )
        units.check_known(self.variants, "variant", VARIANTS)


@dataclass(frozen=True)
class Contender:
    """A variant of the program on one library."""

    variant: str
    engine: Engine
    program: str
    devices_work: bool = False

    @property
    def name(self) -> str:
        return f"{self.variant}, {self.engine.name}"


def contenders(artifacts: Artifacts, spec: BspmmSpec, across_nodes: bool) -> list[Contender]:
    """The contenders, those on the host's libraries first. Leaves out what is not installed, with
    a warning."""
    hosts = oshmem.program(artifacts, PROGRAM)
    if hosts is None:
        console.warn(
            Code.NOTHING_TO_DO,
            "the host has no OpenSHMEM, so its variants are left out; of the host's libraries there is MPI",
        )
    ours = str(artifacts.program(PROGRAM))
    found = []
    for wide in (False, True) if spec.baselines else (False,):
        if "mpi-rma" in spec.variants:
            engine = Engine("host+core", "host MPI given the devices' cores", wide=True) if wide else mpi.HOST
            found.append(Contender("mpi-rma", engine, hosts or ours))
        if hosts is not None:
            found += [
                Contender(name, oshmem.engine(across_nodes, wide), hosts)
                for name in HOSTED[1:]
                if name in spec.variants
            ]
    for name in spec.variants:
        engine = mpi.OFFPATH if name == "mpi-rma" else SHMEM
        found.append(Contender(name, engine, ours, devices_work=name == "compute-offload"))
    return found


class Study:
    """One session on one cluster."""

    def __init__(self, cluster: Cluster, spec: BspmmSpec):
        self.cluster, self.spec = cluster, spec
        lab = cluster.spec
        self.contenders = contenders(cluster.artifacts, spec, cluster.namespaced and lab.nodes > 1)

    def measure(self) -> list[dict]:
        rows = []
        progress = console.progress()
        with progress:
            task = progress.add_task("", total=len(self.spec.meshes) * self.spec.runs * len(self.contenders))
            for mesh in self.spec.meshes:
                taken: dict[str, list[dict]] = {contender.name: [] for contender in self.contenders}
                for _ in range(self.spec.runs):
                    for contender in self.contenders:
                        progress.update(task, description=f"{mesh} x {mesh}: {contender.name}")
                        taken[contender.name].append(self._run(contender, mesh))
                        progress.advance(task)
                product_s = min(one["product_s"] for found in taken.values() for one in found)
                rows += [
                    self._row(contender, mesh, taken[contender.name], product_s)
                    for contender in self.contenders
                ]
        return rows

    def _run(self, contender: Contender, mesh: int) -> dict:
        spec, lab = self.spec, self.cluster.spec
        line = [
            contender.program,
            "--variant",
            contender.variant,
            "--mesh",
            str(mesh),
            "--tile",
            str(spec.tile),
            "--seed",
            str(spec.seed),
            "--iterations",
            str(spec.iterations),
            "--json",
            "-",
        ]
        if spec.sparsity is not None:
            line += ["--sparsity", f"{spec.sparsity:g}"]
        layout = (
            Layout(everywhere(lab.nodes, lab.ranks_per_node, 1), line) if contender.devices_work else None
        )
        result = self.cluster.run(contender.engine, line, capture=True, layout=layout)
        said = measured(result, f"{contender.name}, {mesh} x {mesh} tiles")
        return said | {"wire_bytes": sum(node.sent for node in result.wire_bytes)}

    def _row(self, contender: Contender, mesh: int, found: list[dict], product_s: float) -> dict:
        lab = self.cluster.spec
        last = found[-1]
        medians = {
            key: statistics.median(one[key] for one in found) for key in ("total_s", *PHASES, "wire_bytes")
        }
        nodes = node_of_ranks(lab.nodes, lab.ranks_per_node, last["workers_without_tiles"])
        return {
            "variant": contender.variant,
            "library": contender.engine.name,
            "mesh": mesh,
            "tile": last["tile"],
            "ranks": last["ranks"],
            "units": last["units"],
            **medians,
            "wire_s": statistics.median(
                wire_seconds(one["moved_bytes"], nodes, lab.link.rate) for one in found
            ),
            "compute_limit_s": last["units"] * product_s / len(self._cores(contender)),
            "units_of": last["units_of"],
            "runs": [one["total_s"] for one in found],
            "verified": True,
        }

    def _cores(self, contender: Contender) -> set[int]:
        return {
            cpu
            for place in self.cluster.placements
            for cpu in (place.everything if contender.devices_work or contender.engine.wide else place.host)
        }


def node_of_ranks(nodes: int, ranks_per_node: int, workers: int) -> list[int]:
    """The node of each rank. The ranks that hold tiles come first, node by node, then the devices' workers,
    node by node."""
    holders = [node for node in range(nodes) for _ in range(ranks_per_node)]
    return holders + [node for node in range(nodes) for _ in range(workers // nodes)]


def wire_seconds(moved: list[list[float]], node_of: list[int], rate: int | None) -> float:
    """The least time that the links allow, for payload only. `moved` has the bytes from each rank to each
    other rank."""
    if rate is None:
        return 0.0
    busiest = 0.0
    for node in set(node_of):
        sent = sum(
            size
            for i, row in enumerate(moved)
            for j, size in enumerate(row)
            if node_of[i] == node != node_of[j]
        )
        received = sum(
            size
            for i, row in enumerate(moved)
            for j, size in enumerate(row)
            if node_of[i] != node == node_of[j]
        )
        busiest = max(busiest, sent, received)
    return busiest * 8 / rate


def gains(rows: list[dict]) -> list[dict]:
    """For each mesh: the time that offloading saves compared with the variants on the host's library, and the
    largest ratio of a variant's time on offpath to its time on the host."""
    found = []
    for mesh in dict.fromkeys(row["mesh"] for row in rows):
        at = {(row["variant"], row["library"]): row for row in rows if row["mesh"] == mesh}
        offloaded = at.get((OFFLOADED, "offpath"))
        blocking = at.get((BLOCKING, "host")) or at.get(("mpi-rma", "host"))
        ahead = at.get((NON_BLOCKING, "host"))
        line = {
            "mesh": mesh,
            "slowest_to_host": max(
                (
                    at[name, "offpath"]["total_s"] / at[name, "host"]["total_s"]
                    for name in HOSTED
                    if (name, "offpath") in at and (name, "host") in at
                ),
                default=None,
            ),
        }
        if offloaded and blocking:
            line["blocking"] = blocking["variant"]
            line["less_time_than_blocking_percent"] = less(offloaded["total_s"], blocking["total_s"])
            line["less_get_time_than_blocking_percent"] = less(offloaded["get_s"], blocking["get_s"])
        if offloaded and ahead:
            line["less_time_than_non_blocking_percent"] = less(offloaded["total_s"], ahead["total_s"])
        found.append(line)
    return found


def less(value: float, reference: float) -> float:
    return 100 * (1 - value / reference) if reference > 0 else 0.0


def report(cluster: Cluster, spec: BspmmSpec, rows: list[dict], session: Study) -> dict:
    return {
        "study": "bspmm",
        "lab": stats.describe_cluster(cluster),
        "environment": stats.environment(),
        "contenders": {contender.name: contender.engine.label for contender in session.contenders},
        "tile": spec.tile,
        "sparsity": spec.sparsity if spec.sparsity is not None else "blocks",
        "seed": spec.seed,
        "runs": spec.runs,
        "iterations": spec.iterations,
        "rows": rows,
        "gains": gains(rows),
    }


def show(found: dict) -> None:
    table = Table(
        title=f"bspmm, tiles of {found['tile']}: {found['lab']['description']}; medians of {found['runs']}",
        title_justify="left",
    )
    for name in ("mesh", "variant", "library"):
        table.add_column(name, no_wrap=True)
    for name in (
        "total",
        "to blocking",
        "units",
        "get",
        "copy",
        "compute",
        "accumulate",
        "finish",
        "wire limit",
        "compute limit",
    ):
        table.add_column(name, justify="right")
    previous = None
    for row in found["rows"]:
        if previous not in (None, row["mesh"]):
            table.add_section()
        previous = row["mesh"]
        reference = next(
            (
                r["total_s"]
                for r in found["rows"]
                if (r["mesh"], r["variant"], r["library"]) == (row["mesh"], BLOCKING, "host")
            ),
            None,
        )
        table.add_row(
            str(row["mesh"]),
            row["variant"],
            row["library"],
            units.format_seconds(row["total_s"]),
            f"{row['total_s'] / reference:.3f}" if reference else "-",
            *(units.format_seconds(row[phase]) for phase in PHASES),
            units.format_seconds(row["wire_s"]),
            units.format_seconds(row["compute_limit_s"]),
        )
    console.out.print(table)
    console.out.print(
        "phases: what a rank spends in each, on average, others' turns on its core included; wire limit:"
        " payload of the busiest node over its link's rate; compute limit: all products at the speed of one"
        " alone over the cores that compute",
        soft_wrap=True,
    )
    for line in found["gains"]:
        said = [f"{line['mesh']} x {line['mesh']}:"]
        if "less_time_than_blocking_percent" in line:
            said.append(
                f"offload takes {line['less_time_than_blocking_percent']:.1f} % less time than"
                f" {line['blocking']} on the host's library,"
            )
        if "less_time_than_non_blocking_percent" in line:
            said.append(f"{line['less_time_than_non_blocking_percent']:.1f} % less than its {NON_BLOCKING},")
        if "less_get_time_than_blocking_percent" in line:
            said.append(f"{line['less_get_time_than_blocking_percent']:.1f} % less in gets;")
        if line["slowest_to_host"] is not None:
            said.append(
                f"offpath's slowest beside the same variant on the host's: {line['slowest_to_host']:.3f}"
            )
        console.out.print(" ".join(said), soft_wrap=True)


def draw(found: dict, path: Path) -> None:
    from offpath import bspmm_plot  # matplotlib is slow to load

    bspmm_plot.draw(found, path)
