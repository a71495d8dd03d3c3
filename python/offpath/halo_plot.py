"""The picture of `offpath study halo`: each variant's time relative to plain MPI's, as a function of the
number of nodes."""

from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt

matplotlib.use("Agg")

_COLORS = {
    ("mpi", "host"): "#8d99ae",
    ("nonblocking", "host"): "#e9c46a",
    ("nonblocking", "offpath"): "#e76f51",
    ("group", "offpath"): "#2a9d8f",
    ("schedule", "offpath"): "#6a4c93",
    ("target", "offpath"): "#264653",
    ("target-device", "offpath"): "#90a4ae",
}


def draw(report: dict, path: Path) -> None:
    nodes = list(dict.fromkeys(row["nodes"] for row in report["rows"]))
    figure, axes = plt.subplots(
        1, len(nodes), figsize=(3 + 4.5 * len(nodes), 4.8), layout="constrained", squeeze=False, sharey=True
    )
    for panel, count in zip(axes[0], nodes, strict=True):
        _panel(panel, [row for row in report["rows"] if row["nodes"] == count], count)
    axes[0][0].set_ylabel("time, blocking MPI on the host = 1")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower left", ncols=7, fontsize=8)
    figure.suptitle(
        f"halo, {report['steps']} steps: {report['lab']['description']}; medians of {report['runs']}",
        fontsize=10,
    )
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _panel(panel, rows: list[dict], nodes: int) -> None:
    domains = list(dict.fromkeys((row["dims"], row["size"]) for row in rows))
    width = 0.8 / len(_COLORS)
    middle = (len(_COLORS) - 1) / 2
    for place, ((variant, library), color) in enumerate(_COLORS.items()):
        ratios = {
            (row["dims"], row["size"]): row["to_mpi"]
            for row in rows
            if (row["variant"], row["library"]) == (variant, library)
        }
        panel.bar(
            [at + (place - middle) * width for at in range(len(domains))],
            [ratios.get(domain, 0.0) for domain in domains],
            width,
            color=color,
            label=f"{variant}, {library}",
        )
    panel.axhline(1, color="black", linewidth=0.6)
    panel.set_xticks(range(len(domains)), [f"{dims}-D\n{size}" for dims, size in domains], fontsize=8)
    panel.set_title(f"{nodes} nodes")
