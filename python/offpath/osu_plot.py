"""The picture of `offpath bench osu`: five panels. As in papers on devices, the values are relative to
host-host, except for absolute latency."""

import textwrap
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt

from offpath import units

matplotlib.use("Agg")

_COLORS = {"host-host": "#8d99ae", "dpu-dpu": "#2a9d8f", "host-dpu": "#e76f51"}
_PANELS = (  # title, test, what the panel shows, which direction is better
    ("latency", "latency", "relative_to_host", "less"),
    ("bandwidth", "bw", "relative_to_host", "more"),
    ("latency, absolute", "latency", "value", "less"),
    ("multi-pair message rate, absolute", "mbw_mr", "messages_per_s", "more"),
    ("multi-pair bandwidth and rate", "mbw_mr", "relative_to_host", "more"),
    ("allgather", "allgather", "relative_to_host", "less"),
)


def draw(report: dict, path: Path) -> None:
    figure, grid = plt.subplots(2, 3, figsize=(14, 7.5), layout="constrained")
    for axes, (title, test, key, better) in zip(grid.flat, _PANELS, strict=True):
        rows = (
            report["message_rates"]
            if key == "messages_per_s"
            else [row for row in report["rows"] if row["test"] == test]
        )
        _panel(axes, rows, key)
        pairs = f", {report['mbw_mr_pairs']} pairs" if test == "mbw_mr" else ""
        axes.set_title(f"{title}{pairs} ({better} is better)", fontsize=10)
    handles, labels = next(
        (legend for legend in (axes.get_legend_handles_labels() for axes in grid.flat) if legend[0]), ([], [])
    )
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9)
    figure.suptitle(
        "\n".join(textwrap.wrap(f"{report['lab']['description']}; medians of {report['runs']}", 150)),
        fontsize=9,
    )
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _panel(axes, rows: list[dict], key: str) -> None:
    if not rows:
        axes.text(0.5, 0.5, "not measured", ha="center", va="center", transform=axes.transAxes)
        axes.set_axis_off()
        return
    for pair in dict.fromkeys(row["pair"] for row in rows):
        line = sorted((row for row in rows if row["pair"] == pair), key=lambda row: row["bytes"])
        axes.plot(
            [row["bytes"] for row in line],
            [row[key] for row in line],
            "o-",
            markersize=3,
            color=_COLORS[pair],
            label=pair,
        )
    sizes = sorted({row["bytes"] for row in rows})
    shown = sizes[:: max(1, -(-len(sizes) // 8))]
    axes.set_xscale("log", base=2)
    axes.set_xticks(shown, [units.format_size(size) for size in shown], fontsize=8)
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    if key == "relative_to_host":
        axes.set_ylim(bottom=0)
        axes.set_ylabel("relative to host-host")
    else:
        axes.set_yscale("log")
        axes.set_ylabel("messages per second" if key == "messages_per_s" else rows[0]["unit"])
