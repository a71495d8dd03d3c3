"""The picture of `offpath study bspmm`: the total time at each mesh, and the phases of that time at the
largest mesh."""

import textwrap
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt

from offpath.bspmm_names import PHASES, VARIANTS

matplotlib.use("Agg")

# Each variant has a color, which is pale where the variant runs on the host's own library.
_COLORS = {
    "mpi-rma": "#577590",
    "shmem": "#e76f51",
    "shmem-nbi": "#e9a820",
    "offload": "#2a9d8f",
    "compute-offload": "#6a4c93",
}
_PALE = {"offpath": 1.0, "host": 0.45, "host+core": 0.25}
_PHASE_COLORS = {
    "claim_s": "#8d99ae",
    "get_s": "#e76f51",
    "copy_s": "#e9c46a",
    "compute_s": "#2a9d8f",
    "accumulate_s": "#6a4c93",
    "finish_s": "#cccccc",
}
_PHASE_LABELS = {
    "claim_s": "units",
    "get_s": "get",
    "copy_s": "local copy",
    "compute_s": "compute",
    "accumulate_s": "accumulate",
    "finish_s": "finish",
}


def draw(report: dict, path: Path) -> None:
    meshes = list(dict.fromkeys(row["mesh"] for row in report["rows"]))
    figure, axes = plt.subplots(
        1,
        len(meshes) + 1,
        figsize=(5 + 3.0 * len(meshes), 5.4),
        layout="constrained",
        width_ratios=[2] * len(meshes) + [3],
        squeeze=False,
    )
    for panel, mesh in zip(axes[0], meshes, strict=False):
        _totals(panel, [row for row in report["rows"] if row["mesh"] == mesh], mesh)
    _breakdown(axes[0][-1], report)
    axes[0][0].set_ylabel("seconds, total")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower left", ncols=5, fontsize=8)
    figure.suptitle(
        "\n".join(
            textwrap.wrap(
                f"bspmm, tiles of {report['tile']}: {report['lab']['description']}; medians of"
                f" {report['runs']}",
                150,
            )
        ),
        fontsize=9,
    )
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _totals(axes, rows: list[dict], mesh: int) -> None:
    """Draws the total times at one mesh. A black line marks the lower bound, which is the longer of the
    wire's and the cores' times."""
    rows = _in_order(rows)
    for at, row in enumerate(rows):
        spread = [
            [max(0.0, row["total_s"] - min(row["runs"]))],
            [max(0.0, max(row["runs"]) - row["total_s"])],
        ]
        axes.bar(
            at,
            row["total_s"],
            0.9,
            yerr=spread,
            capsize=2,
            color=_COLORS[row["variant"]],
            alpha=_PALE.get(row["library"], 0.45),
            label=f"{row['variant']}, {row['library']}",
        )
        limit = max(row["wire_s"], row["compute_limit_s"])
        axes.plot(
            [at - 0.45, at + 0.45],
            [limit, limit],
            color="black",
            linewidth=1.0,
            label="limit of wire or cores" if at == len(rows) - 1 else None,
        )
    axes.set_xticks([])
    axes.set_ylim(bottom=0)
    axes.set_title(f"{mesh} x {mesh}", fontsize=10)
    axes.grid(axis="y", alpha=0.3)


def _in_order(rows: list[dict]) -> list[dict]:
    return sorted(rows, key=lambda row: (VARIANTS.index(row["variant"]), row["library"] == "offpath"))


def _breakdown(axes, report: dict) -> None:
    mesh = max(row["mesh"] for row in report["rows"])
    rows = _in_order([row for row in report["rows"] if row["mesh"] == mesh])
    labels = [f"{row['variant']}\n{row['library']}" for row in rows]
    bottom = [0.0] * len(rows)
    for phase in PHASES:
        values = [row[phase] for row in rows]
        axes.bar(
            range(len(rows)),
            values,
            0.75,
            bottom=bottom,
            color=_PHASE_COLORS[phase],
            label=_PHASE_LABELS[phase],
        )
        bottom = [low + value for low, value in zip(bottom, values, strict=True)]
    axes.set_xticks(range(len(rows)), labels, fontsize=7, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_ylabel("seconds of a rank, mean")
    axes.set_title(f"where the time goes at {mesh} x {mesh}", fontsize=10)
    axes.grid(axis="y", alpha=0.3)
    axes.set_ylim(top=1.2 * max(bottom))  # leaves room for the legend
    axes.legend(fontsize=8, ncols=3, loc="upper right")
