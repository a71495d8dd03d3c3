"""What the pictures of the studies share: colors, grids of panels, and choices of rows."""

from collections.abc import Callable

import matplotlib
import matplotlib.pyplot as plt

from offpath.minimd.case import (
    ALL,
    BALANCED,
    BLOCKING,
    DEVICES,
    HALO,
    HOSTS,
    OFFLOADED,
    OVERLAPPED,
    PAPER,
    POLLED,
    RUNTIME_BALANCED,
    RUNTIME_PAPER,
    SPLIT,
    THREADED,
    TOGETHER,
    TUNNEL,
)

matplotlib.use("Agg")

COLORS = {
    HOSTS: "#8d99ae",
    DEVICES: "#6a4c93",
    ALL: "#f4a261",
    PAPER: "#577590",
    BALANCED: "#2a9d8f",
    RUNTIME_PAPER: "#8fa7bd",
    RUNTIME_BALANCED: "#7cc7bd",
    TUNNEL: "#e9c46a",
    SPLIT: "#e76f51",
    OFFLOADED: "#2a9d8f",
    BLOCKING: "#6a4c93",
    OVERLAPPED: "#8d99ae",
    POLLED: "#577590",
    THREADED: "#e9c46a",
    HALO: "#e76f51",
    TOGETHER: "#333333",
}
SERIES = ("#577590", "#2a9d8f", "#e9a820", "#e76f51", "#6a4c93", "#8d99ae", "#333333")


def values(rows: list[dict], key: str) -> list:
    return list(dict.fromkeys(row[key] for row in rows))


def where(rows: list[dict], **fixed) -> list[dict]:
    return [row for row in rows if all(row[key] == value for key, value in fixed.items())]


def grid_of(rows: int, columns: int, width: float = 3.8, height: float = 3.3):
    return plt.subplots(
        rows,
        columns,
        figsize=(max(6.4, width * columns + 0.6), height * rows + 0.9),
        layout="constrained",
        squeeze=False,
    )


def by_name(axes, values: list, label: str) -> None:
    axes.set_xticks(
        range(len(values)),
        [f"{value:,}" if isinstance(value, int) else f"{value:g}" for value in values],
        fontsize=8,
    )
    axes.set_xlabel(label)
    axes.grid(axis="y", alpha=0.3)


def lines(
    axes, rows: list[dict], x: str, y: str, split: str, naming: Callable, ticks: list | None = None
) -> None:
    """Draws one line for each value of `split`, with the values of `x` in equal steps. Rows from a simulator
    have hollow marks."""
    places = ticks or values(rows, x)
    for color, value in zip(SERIES * 9, values(rows, split), strict=False):
        line = where(rows, **{split: value})
        axes.plot(
            [places.index(row[x]) for row in line],
            [row[y] for row in line],
            "-",
            color=color,
            label=naming(value),
        )
        for row in line:
            axes.plot(
                places.index(row[x]),
                row[y],
                "o",
                color=color,
                markerfacecolor=color if row["source"] == "lab" else "white",
            )


def nodes_text(count: int) -> str:
    return f"{count} node{'s' if count > 1 else ''}"
