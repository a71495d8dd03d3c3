"""What devices would bring to programs at growing numbers of nodes: skeletons, simulated without offload and
with it."""

from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from offpath import console, sim, skeletons, stats, units
from offpath.artifacts import Artifacts
from offpath.codes import Code
from offpath.errors import OffpathError

ENGINES = ("host", "offpath")
# The same problem on all numbers of nodes.
PROGRAMS = (
    "fft3d --n 512 --iterations 2",
    "halo --dims 3 --size 800 --steps 10 --variant nonblocking",
    "ring-hpl --n 8192 --variant mpi-ibcast",
    "bspmm --mesh 24 --lookahead 1",
    "minimd -s 100 -n 20",
)


@dataclass(frozen=True)
class ProgramScaleSpec:
    """`nodes` are 1 or more; `programs` are command lines of skeletons; `kernels`: a file, or None."""

    platform: str
    nodes: tuple[int, ...]
    ranks_per_node: int
    programs: tuple[str, ...]
    kernels: Path | None = None

    def check(self) -> None:
        sim.find_platform(self.platform)
        for count in self.nodes:
            if not 1 <= count * self.ranks_per_node <= skeletons.MOST_RANKS:
                raise OffpathError(
                    Code.OPTION,
                    f"--nodes {count} with {self.ranks_per_node} ranks each is out of range",
                    f"use up to {skeletons.MOST_RANKS} ranks",
                )
        for line in self.programs:
            skeletons.parse(line)


def measure(spec: ProgramScaleSpec, artifacts: Artifacts) -> dict:
    rows = []
    for line in spec.programs:
        for nodes in sorted(set(spec.nodes)):
            console.note(f"simulating {line} on {units.count(nodes, 'node')}")
            row: dict = {"program": line, "nodes": nodes, "ranks": nodes * spec.ranks_per_node}
            for engine in ENGINES:
                one = sim.SimSpec(spec.platform, nodes, spec.ranks_per_node, "", 0, engine)
                found = skeletons.simulate(line, one, artifacts, spec.kernels, None)
                row[f"{engine}_s"], row["compute_s"] = found["time_s"], found["compute_s"]
            row["gain_percent"] = 100 * (1 - row["offpath_s"] / row["host_s"])
            rows.append(row)
    return {"platform": spec.platform, "environment": stats.environment(), "rows": rows}


def _percent(value: float) -> str:
    return f"{value:+.0f} %" if abs(value) >= 0.5 else "0 %"


def show(found: dict) -> None:
    table = Table(title=f"programs on {found['platform']}, simulated", title_justify="left")
    for column in ("program", "nodes", "ranks", "computation", "without devices", "with them", "gain"):
        table.add_column(column, justify="left" if column == "program" else "right")
    for row in found["rows"]:
        table.add_row(
            row["program"],
            str(row["nodes"]),
            str(row["ranks"]),
            *(units.format_seconds(row[key]) for key in ("compute_s", "host_s", "offpath_s")),
            _percent(row["gain_percent"]),
        )
    console.out.print(table)
    console.note("computation: of a rank, the median. Losses: the product would learn to stay on the host")


def draw(found: dict, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from offpath import plots

    programs = list(dict.fromkeys(row["program"] for row in found["rows"]))
    figure, axes = plt.subplots(
        1, len(programs), figsize=(3.4 * len(programs), 3.6), layout="constrained", squeeze=False
    )
    labels = {"host": "without devices", "offpath": "with devices"}
    for axis, program in zip(axes[0], programs, strict=True):
        rows = [row for row in found["rows"] if row["program"] == program]
        nodes = [row["nodes"] for row in rows]
        for engine in ENGINES:
            times = [row[f"{engine}_s"] for row in rows]
            axis.loglog(nodes, times, marker="o", color=plots.color(engine), label=labels[engine])
        axis.loglog(
            nodes,
            [row["compute_s"] for row in rows],
            color="#999999",
            linestyle=":",
            label="computation alone",
        )
        for row in rows:
            axis.annotate(
                _percent(row["gain_percent"]), (row["nodes"], max(row["host_s"], row["offpath_s"])),
                textcoords="offset points", xytext=(0, 7), ha="center", fontsize=8,
            )  # fmt: skip
        axis.margins(x=0.15, y=0.15)
        axis.set_xticks(nodes, [str(count) for count in nodes])
        axis.minorticks_off()
        axis.set_xlabel("nodes")
        axis.set_title("\n--".join(program.split(" --")), fontsize=8)
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("seconds")
    plots.legend_below(figure, axes[0][0])
    each = found["rows"][0]["ranks"] // found["rows"][0]["nodes"]
    figure.suptitle(f"{found['platform']}, {each} ranks a node, simulated; gain of devices in percent")
    figure.savefig(path, dpi=120)
    plt.close(figure)
