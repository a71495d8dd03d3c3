"""`offpath study halo`: stencils in all variants of their halo exchange, compared with plain MPI.

The contenders run in turn, several times, on the first nodes of one cluster, and medians are compared. The
reference is the blocking variant on the host's MPI. Every run of a setting must give the same checksum.
"""

import statistics
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from offpath import console, stats, units
from offpath.artifacts import Artifacts
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.lab import mpi
from offpath.lab.cluster import Cluster, measured
from offpath.lab.mpi import Engine

PROGRAM = "halo"
TARGET_REGIONS = "lib/libhalo-target-openmpi.so"
PARTS = ("boundary_s", "interior_s", "exchange_s")
OWN = Engine("offpath", "offpath", offload=True, front_end=False)


@dataclass(frozen=True)
class Contender:
    variant: str
    engine: Engine
    way: str = ""  # of variant target: with the device, whether or not that is faster

    @property
    def label(self) -> str:
        return f"{self.variant}-{self.way}" if self.way else self.variant

    @property
    def name(self) -> str:
        return f"{self.label}, {self.engine.name}"


CONTENDERS = (
    Contender("mpi", mpi.HOST),
    Contender("nonblocking", mpi.HOST),
    Contender("nonblocking", mpi.OFFPATH),
    Contender("group", OWN),
    Contender("schedule", OWN),
    Contender("target", mpi.OFFPATH),
    Contender("target", mpi.OFFPATH, "device"),
)
LABELS = tuple(dict.fromkeys(contender.label for contender in CONTENDERS))


@dataclass(frozen=True)
class Setting:
    nodes: int
    dims: int
    size: int


@dataclass(frozen=True)
class HaloSpec:
    """`sizes` has, for each number of dimensions, the cells along each of them. `variants` are labels; the
    reference is always measured."""

    nodes: tuple[int, ...]
    sizes: dict[int, tuple[int, ...]]
    steps: int = 40
    runs: int = 5
    periodic: bool = False
    variants: tuple[str, ...] = LABELS

    def check(self) -> None:
        for value, name, high in (
            (self.steps, "--steps", 10**6),
            (self.runs, "--runs", 1000),
            *((nodes, "--nodes", 128) for nodes in self.nodes),
            *((size, f"--sizes-{dims}d", 10**9) for dims, each in self.sizes.items() for size in each),
        ):
            if not 1 <= value <= high:
                raise OffpathError(Code.OPTION, f"{name} {value} is out of range", f"use 1 to {high}")
        for variant in self.variants:
            if variant not in LABELS:
                raise OffpathError(
                    Code.OPTION, f"--variants: there is no {variant}", f"use some of {', '.join(LABELS)}"
                )

    def settings(self) -> list[Setting]:
        return [
            Setting(nodes, dims, size)
            for nodes in self.nodes
            for dims, sizes in self.sizes.items()
            for size in sizes
        ]


def left_out(artifacts: Artifacts, dpu: str) -> dict[str, str]:
    """The variants that cannot run here, and the reason for each."""
    reasons = {}
    if not (artifacts.root / TARGET_REGIONS).exists():
        reasons["target"] = "it was not built, for lack of clang 16"
    if dpu != "local":
        reasons["schedule"] = "its devices map the hosts' memory, which needs --dpu local"
    return reasons


def contenders(artifacts: Artifacts, dpu: str, variants: tuple[str, ...] = LABELS) -> list[Contender]:
    missing = left_out(artifacts, dpu)
    wanted = (CONTENDERS[0].label, *variants)
    return [each for each in CONTENDERS if each.variant not in missing and each.label in wanted]


def measure(cluster: Cluster, spec: HaloSpec) -> list[dict]:
    rows = []
    there = contenders(cluster.artifacts, cluster.spec.dpu, spec.variants)
    for variant, reason in left_out(cluster.artifacts, cluster.spec.dpu).items():
        console.note(f"variant {variant} is left out: {reason}")
    progress = console.progress()
    with progress:
        task = progress.add_task("", total=len(spec.settings()) * spec.runs * len(there))
        for setting in spec.settings():
            part = cluster.first(setting.nodes)
            taken: dict[str, list[dict]] = {contender.name: [] for contender in there}
            for _ in range(spec.runs):
                for contender in there:
                    progress.update(task, description=f"{describe(setting)}: {contender.name}")
                    taken[contender.name].append(_run(part, spec, setting, contender))
                    progress.advance(task)
            rows += rows_of(setting, taken)
    return rows


def describe(setting: Setting) -> str:
    return f"{setting.nodes} nodes, {setting.dims}-D, {setting.size}"


def _run(cluster: Cluster, spec: HaloSpec, setting: Setting, contender: Contender) -> dict:
    line = [str(cluster.artifacts.program(PROGRAM)), "--variant", contender.variant]
    line += ["--dims", str(setting.dims), "--size", str(setting.size), "--steps", str(spec.steps)]
    line += ["--way", contender.way] if contender.way else []
    line += ["--alloc", "mpi", "--json", "-"] + (["--periodic"] if spec.periodic else [])
    result = cluster.run(contender.engine, line, capture=True)
    return measured(result, f"{contender.name}, {describe(setting)}", verifies=False)


def rows_of(setting: Setting, taken: dict[str, list[dict]]) -> list[dict]:
    """One row for each contender: medians, and the ratio of its median to that of blocking MPI."""
    sums = {one["checksum"] for found in taken.values() for one in found}
    if len(sums) != 1:
        raise OffpathError(
            Code.WRONG_RESULTS,
            f"{describe(setting)}: the variants gave different results: {sorted(sums)}",
            code=1,
        )
    rows: list[dict] = []
    for contender in CONTENDERS:
        if contender.name not in taken:
            continue
        found = taken[contender.name]
        medians = {key: statistics.median(one[key] for one in found) for key in ("total_s", *PARTS)}
        reference = rows[0] if rows else medians
        rows.append(
            {
                "nodes": setting.nodes,
                "dims": setting.dims,
                "size": setting.size,
                "variant": contender.label,
                "library": contender.engine.name,
                "ranks": found[-1]["ranks"],
                **medians,
                "to_mpi": medians["total_s"] / reference["total_s"],
                # The share of the exchange in the time of plain MPI.
                "communication_share": reference["exchange_s"] / reference["total_s"],
                # Which way of variant target each run has kept to.
                "ways": [one["way"] for one in found if "way" in one],
                "runs": [one["total_s"] for one in found],
                "checksum": found[-1]["checksum"],
            }
        )
    return rows


def report(cluster: Cluster, spec: HaloSpec, rows: list[dict]) -> dict:
    return {
        "study": "halo",
        "lab": stats.describe_cluster(cluster),
        "environment": stats.environment(),
        "steps": spec.steps,
        "runs": spec.runs,
        "periodic": spec.periodic,
        "rows": rows,
    }


def show(found: dict) -> None:
    table = Table(
        title=f"halo, {found['steps']} steps: {found['lab']['description']}; medians of {found['runs']}",
        title_justify="left",
    )
    for name in ("nodes", "domain", "variant", "library"):
        table.add_column(name, no_wrap=True)
    for name in ("total", "to mpi", "boundary", "interior", "exchange"):
        table.add_column(name, justify="right")
    previous = None
    for row in found["rows"]:
        setting = (row["nodes"], row["dims"], row["size"])
        if previous not in (None, setting):
            table.add_section()
        previous = setting
        table.add_row(
            str(row["nodes"]),
            f"{row['dims']}-D, {row['size']}",
            row["variant"],
            row["library"],
            units.format_seconds(row["total_s"]),
            f"{row['to_mpi']:.3f}",
            *(units.format_seconds(row[part]) for part in PARTS),
        )
    console.out.print(table)
    console.out.print(
        "to mpi: total over that of the blocking variant on the host's MPI; boundary: of schedule and"
        " target, the device's time beside the host's",
        soft_wrap=True,
    )


def draw(found: dict, path: Path) -> None:
    from offpath import halo_plot  # matplotlib is slow to load

    halo_plot.draw(found, path)
