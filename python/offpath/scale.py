"""What the engine itself needs at many nodes, from simulated runs: connections, memory of a proxy, the time
to start, and the time of an operation. The simulator runs the engine of the product, one for each node."""

from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from offpath import console, sim, stats, units
from offpath.artifacts import Artifacts
from offpath.codes import Code
from offpath.errors import OffpathError

PATTERNS = ("halo", "allreduce", "bcast", "barrier")


@dataclass(frozen=True)
class ScaleSpec:
    platform: str
    nodes: tuple[int, ...]
    patterns: tuple[str, ...]
    size: int

    def check(self) -> None:
        sim.find_platform(self.platform)
        for pattern in self.patterns:
            if pattern not in sim.PATTERNS:
                raise OffpathError(
                    Code.OPTION,
                    f"--patterns {pattern!r} is not known",
                    "use some of " + ", ".join(sim.PATTERNS),
                )
        for count in self.nodes:
            if not 2 <= count <= 65536:
                raise OffpathError(Code.OPTION, f"--nodes {count} is out of range", "use 2 to 65536")


def measure(spec: ScaleSpec, artifacts: Artifacts) -> dict:
    rows = []
    for nodes in sorted(set(spec.nodes)):
        for pattern in spec.patterns:
            console.note(f"simulating {pattern} on {units.count(nodes, 'node')}")
            size = 0 if pattern == "barrier" else spec.size
            one = sim.SimSpec(
                spec.platform, nodes, 1, pattern, size, "offpath", {}, ("--iterations=1", "--alone")
            )
            rows.append(_row(sim.simulate(one, artifacts)))
    return {"platform": spec.platform, "environment": stats.environment(), "rows": rows}


def _row(found: dict) -> dict:
    nodes = found["nodes"]
    return {
        "nodes": nodes,
        "pattern": found["pattern"],
        "bytes": found["bytes"],
        "time_s": found["time_s"],
        "connections": found["connections"],
        "connections_per_proxy": found["connections"] / nodes,
        "memory_per_proxy_bytes": found["setup_bytes"] / nodes,
        "memory_per_pair_bytes": found["setup_bytes"] / nodes**2,
        "start_per_proxy_s": found["setup_s"] / nodes,
        "simulation_s": found["wall_s"],
        "simulation_peak_bytes": found["peak_rss_bytes"],
        "events": found["events"],
    }


def show(found: dict) -> None:
    table = Table(title=f"offpath's engine on {found['platform']}, one rank a node", title_justify="left")
    for column in ("nodes", "pattern", "time", "connections", "memory", "start", "simulated in", "with"):
        table.add_column(column, justify="left" if column == "pattern" else "right")
    for row in found["rows"]:
        table.add_row(
            str(row["nodes"]),
            row["pattern"],
            units.format_seconds(row["time_s"]),
            f"{row['connections_per_proxy']:.1f}",
            units.format_size(round(row["memory_per_proxy_bytes"])),
            units.format_seconds(row["start_per_proxy_s"]),
            units.format_seconds(row["simulation_s"]),
            f"{row['simulation_peak_bytes'] / 2**20:.0f} MiB",
        )
    console.out.print(table)
    console.note("connections, memory and start are those of one proxy, on average")


def draw(found: dict, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = (
        ("time_s", "time of an operation, s"),
        ("connections_per_proxy", "connections of a proxy"),
        ("memory_per_proxy_bytes", "memory of a proxy at the start, bytes"),
        ("start_per_proxy_s", "start of a proxy, s of its core"),
    )
    figure, axes = plt.subplots(1, len(panels), figsize=(16, 4), layout="constrained")
    for axis, (key, label) in zip(axes, panels, strict=True):
        for pattern in dict.fromkeys(row["pattern"] for row in found["rows"]):
            rows = [row for row in found["rows"] if row["pattern"] == pattern]
            axis.loglog([row["nodes"] for row in rows], [row[key] for row in rows], marker="o", label=pattern)
        axis.set_xlabel("nodes")
        axis.set_title(label, fontsize=10)
        axis.grid(alpha=0.3)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
    figure.savefig(path, dpi=150)
    plt.close(figure)
