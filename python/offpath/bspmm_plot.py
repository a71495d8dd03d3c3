"""The picture of `offpath study bspmm`: total time by mesh, and where the time goes at the largest mesh."""

import textwrap
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from offpath.bspmm import PHASES, VARIANTS  # noqa: E402

# A color a variant, pale where it runs on the host's own library.
_COLORS = {"mpi-rma": "#577590", "shmem": "#e76f51", "shmem-nbi": "#e9a820", "offload": "#2a9d8f", "compute-offload": "#6a4c93"}
_PALE = {"offpath": 1.0, "host": 0.45, "host+core": 0.25}
_PHASE_COLORS = {
    "claim_s": "#8d99ae", "get_s": "#e76f51", "copy_s": "#e9c46a", "compute_s": "#2a9d8f", "accumulate_s": "#6a4c93", "finish_s": "#cccccc",
}
_PHASE_LABELS = {"claim_s": "units", "get_s": "get", "copy_s": "local copy", "compute_s": "compute", "accumulate_s": "accumulate", "finish_s": "finish"}


def draw(report: dict, path: Path) -> None:
    figure, (totals, phases) = plt.subplots(
        1, 2, figsize=(max(13.0, 6 + 2.2 * len({row["mesh"] for row in report["rows"]})), 5.6), layout="constrained", width_ratios=[3, 2]
    )
    _totals(totals, report)
    _breakdown(phases, report)
    figure.suptitle("\n".join(textwrap.wrap(f"bspmm, tiles of {report['tile']}: {report['lab']['description']}; medians of {report['runs']}", 150)), fontsize=9)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _totals(axes, report: dict) -> None:
    meshes = list(dict.fromkeys(row["mesh"] for row in report["rows"]))
    names = list(dict.fromkeys((row["variant"], row["library"]) for row in report["rows"]))
    names.sort(key=lambda name: (VARIANTS.index(name[0]), name[1] == "offpath"))
    width = 0.85 / len(names)
    for index, (variant, library) in enumerate(names):
        rows = {row["mesh"]: row for row in report["rows"] if (row["variant"], row["library"]) == (variant, library)}
        at = [place - 0.425 + width * (index + 0.5) for place, mesh in enumerate(meshes) if mesh in rows]
        shown = [rows[mesh] for mesh in meshes if mesh in rows]
        spread = [[max(0.0, row["total_s"] - min(row["runs"])) for row in shown], [max(0.0, max(row["runs"]) - row["total_s"]) for row in shown]]
        axes.bar(at, [row["total_s"] for row in shown], width, yerr=spread, capsize=2, color=_COLORS[variant], alpha=_PALE.get(library, 0.45),
                 label=f"{variant}, {library}")
        for place, row in zip(at, shown):
            limit = max(row["wire_s"], row["compute_limit_s"])
            axes.plot([place - width / 2, place + width / 2], [limit, limit], color="black", linewidth=1.0,
                      label="limit of wire or cores" if (index, place) == (len(names) - 1, at[-1]) else None)
    axes.set_xticks(range(len(meshes)), [f"{mesh} x {mesh}" for mesh in meshes])
    axes.set_ylabel("seconds")
    axes.set_yscale("log")
    axes.set_title("total time by mesh", fontsize=10)
    axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize=8)


def _breakdown(axes, report: dict) -> None:
    mesh = max(row["mesh"] for row in report["rows"])
    rows = [row for row in report["rows"] if row["mesh"] == mesh]
    rows.sort(key=lambda row: (VARIANTS.index(row["variant"]), row["library"] == "offpath"))
    labels = [f"{row['variant']}\n{row['library']}" for row in rows]
    bottom = [0.0] * len(rows)
    for phase in PHASES:
        values = [row[phase] for row in rows]
        axes.bar(range(len(rows)), values, 0.75, bottom=bottom, color=_PHASE_COLORS[phase], label=_PHASE_LABELS[phase])
        bottom = [low + value for low, value in zip(bottom, values)]
    axes.set_xticks(range(len(rows)), labels, fontsize=7, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_ylabel("seconds of a rank, mean")
    axes.set_title(f"where the time goes at {mesh} x {mesh}", fontsize=10)
    axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize=8)
