"""The picture of `offpath bench exchange`."""

from pathlib import Path

import matplotlib.pyplot as plt

from offpath import plots, units


def draw(found: dict, path: Path) -> None:
    """One panel for each operation: completion over the ideal time as a function of the size, a line for each
    engine and skew."""
    operations = list(dict.fromkeys(row["op"] for row in found["rows"]))
    skews = list(dict.fromkeys(row["skew_s"] for row in found["rows"]))
    figure, grid = plt.subplots(
        1, len(operations), figsize=(max(7.0, 4.2 * len(operations)), 4), layout="constrained", squeeze=False
    )
    styles = ("o-", "s--", "^:", "d-.")
    for axes, operation in zip(grid[0], operations, strict=True):
        for engine in found["engines"]:
            for index, skew in enumerate(skews):
                rows = [
                    row
                    for row in found["rows"]
                    if (row["op"], row["engine"], row["skew_s"]) == (operation, engine, skew)
                ]
                axes.plot(
                    [row["bytes"] for row in rows],
                    [row["completion_s"] / (row["ideal_s"] or 1.0) for row in rows],
                    styles[index % len(styles)],
                    color=plots.color(engine),
                    label=f"{engine}, {units.format_seconds(skew)}",
                )
        axes.set(title=operation, xscale="log", xlabel="bytes")
        axes.axhline(1.0, color="black", linewidth=0.8)
    grid[0][0].set_ylabel("completion over ideal time")
    grid[0][0].legend(fontsize=8)
    plots.finish(figure, found, path)
