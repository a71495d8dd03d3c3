"""The picture of `offpath bench programs`."""

from pathlib import Path

import matplotlib.pyplot as plt

from offpath import plots


def draw(found: dict, path: Path) -> None:
    """For each program its time with offload relative to the time without, in first and in later runs, on the
    band in which equal runs lie."""
    rows = [row for row in found["rows"] if not row["failures"]][::-1]
    figure, panels = plt.subplots(
        1, 2, figsize=(10, 1.6 + 0.32 * len(rows)), sharey=True, layout="constrained"
    )
    for axes, part, title in zip(
        panels, ("own", "whole"), ("the program's own time", "mpirun from start to end"), strict=True
    ):
        places = range(len(rows))
        noise = [row[part]["noise"] for row in rows]
        axes.barh(
            places, [2 * n for n in noise], left=[1 - n for n in noise], color="#dddddd", label="equal runs"
        )
        for kind, shift, shade in (
            ("first", 0.15, plots.color("host+core")),
            ("later", -0.15, plots.color("offpath")),
        ):
            entries = [row[part][kind] for row in rows]
            ratios = [entry["ratio"] for entry in entries]
            spread = [
                [entry["ratio"] - entry["low"] for entry in entries],
                [entry["high"] - entry["ratio"] for entry in entries],
            ]
            axes.errorbar(
                ratios, [place + shift for place in places], xerr=spread, fmt="o", ms=4, lw=1, color=shade,
                label=f"{kind} run",
            )  # fmt: skip
        axes.axvline(1, color="black", linewidth=0.8)
        axes.axvline(1 + found["tolerance"], color="black", linewidth=0.8, linestyle=":")
        axes.set(title=title, xlabel="time with offload / without")
        axes.set_yticks(places, [row["program"] for row in rows])
        axes.grid(alpha=0.3, axis="x")
    plots.legend_below(figure, panels[0])
    plots.finish(figure, found, path)
