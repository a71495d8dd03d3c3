"""The pictures that compare measured times with the model of the papers (Eq. 3)."""

from offpath.minimd.case import HOSTS, LABELS, PAPER
from offpath.minimd.panels import COLORS, SERIES, by_name, grid_of, nodes_text, values, where


def model(rows: list[dict]):
    """A panel for each size and slowness: total time as a function of the host threads, a color for each
    number of device threads. The dashed lines are the model."""
    panels = list(
        dict.fromkeys((row["nodes"], row["interval"], row["atoms"], row["device_slowness"]) for row in rows)
    )
    columns = min(4, len(panels))
    figure, grid = grid_of(-(-len(panels) // columns), columns, width=3.2)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for axes, (nodes, interval, atoms, slowness) in zip(grid.flat, panels, strict=False):
        shown = where(rows, nodes=nodes, interval=interval, atoms=atoms, device_slowness=slowness)
        threads = values(shown, "threads")
        if len(threads) == 1 and len(values(shown, "device_threads")) == 1:
            _one_setting(axes, shown[0])
        else:
            _by_threads(axes, shown, threads)
        axes.set(
            title=f"{nodes_text(nodes)}, {atoms:,} atoms, every {interval},\nforces {slowness} x as slow",
            ylim=(0, None),
        )
        axes.title.set_fontsize(8)
        axes.grid(axis="y", alpha=0.3)
    for row in grid:
        row[0].set_ylabel("seconds")
    if len(values(rows, "threads")) > 1 or len(values(rows, "device_threads")) > 1:
        grid[0][0].legend(fontsize=7)
    return figure


def _one_setting(axes, row: dict) -> None:
    bars = [
        ("hosts only", "base_total_s", HOSTS),
        ("off-path", "total_s", PAPER),
        ("Eq. 3", "predicted_s", None),
        ("Eq. 3 and\ntransfers", "extended_s", None),
    ]
    for at, (_, key, scheme) in enumerate(bars):
        value = row[key] or 0.0
        axes.bar(
            at,
            value,
            0.75,
            color=COLORS[scheme] if scheme else "white",
            edgecolor=COLORS[PAPER],
            linestyle="-" if scheme else "--",
        )
        axes.text(at, value, f"{value:.3f}", ha="center", va="bottom", fontsize=7)
        if value and not scheme:
            axes.text(
                at,
                value / 2,
                f"measured\n{row['total_s'] / value:.2f} x",
                ha="center",
                va="center",
                fontsize=7,
            )
    axes.margins(y=0.18)
    axes.set_xticks(range(len(bars)), [name for name, _, _ in bars], fontsize=7)


def _by_threads(axes, rows: list[dict], threads: list[int]) -> None:
    for color, count in zip(SERIES * 9, values(rows, "device_threads"), strict=False):
        line = where(rows, device_threads=count)
        at = [threads.index(row["threads"]) for row in line]
        axes.plot(
            at, [row["total_s"] for row in line], "o-", color=color, label=f"off-path, {count} on the device"
        )
        axes.plot(at, [row["predicted_s"] for row in line], "x--", color=color, label="Eq. 3")
        if line[0]["extended_s"]:
            axes.plot(at, [row["extended_s"] for row in line], ":", color=color, label="Eq. 3 and transfers")
    first = where(rows, device_threads=rows[0]["device_threads"])
    axes.plot(
        [threads.index(row["threads"]) for row in first],
        [row["base_total_s"] for row in first],
        "s-",
        color=COLORS[HOSTS],
        label="hosts only",
    )
    by_name(axes, threads, "host threads")


def auxiliary(rows: list[dict]):
    panels = list(dict.fromkeys((row["nodes"], row["interval"], row["atoms"]) for row in rows))
    figure, grid = grid_of(1, len(panels), width=4.6)
    for axes, (nodes, interval, atoms) in zip(grid[0], panels, strict=True):
        shown = where(
            rows,
            nodes=nodes,
            interval=interval,
            atoms=atoms,
            threads=rows[0]["threads"],
            device_threads=rows[0]["device_threads"],
        )
        slowness = values(shown, "device_slowness")
        at = range(len(shown))
        axes.plot(at, [row["base_total_s"] for row in shown], "s-", color=COLORS[HOSTS], label="hosts only")
        axes.plot(at, [row["total_s"] for row in shown], "o-", color=COLORS[PAPER], label=LABELS[PAPER])
        axes.plot(at, [row["predicted_s"] for row in shown], "x--", color=COLORS[PAPER], label="Eq. 3")
        if shown[0]["extended_s"]:
            axes.plot(
                at,
                [row["extended_s"] for row in shown],
                ":",
                color=COLORS[PAPER],
                label="Eq. 3 and transfers",
            )
        axes.set(title=f"{nodes_text(nodes)}, {atoms:,} atoms, every {interval}", ylim=(0, None))
        by_name(
            axes,
            slowness,
            "times that the device's forces take as long as on a host core (1: auxiliary node)",
        )
        axes.xaxis.label.set_fontsize(8)
    grid[0][0].set_ylabel("seconds")
    grid[0][0].legend(fontsize=8)
    return figure
