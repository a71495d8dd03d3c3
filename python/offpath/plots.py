"""Pictures of measurements."""

import textwrap
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt

from offpath import metrics, units

matplotlib.use("Agg")

_COLORS = {
    "host": "#8d99ae",
    "offpath": "#2a9d8f",
    "host+thread": "#e9c46a",
    "host+core": "#f4a261",
    "host+core+thread": "#e76f51",
    "mpich": "#9d8189",
    "mpich+core+thread": "#6d597a",
}


def color(engine: str) -> str:
    return _COLORS.get(engine, "#333333")


def compare(report: dict, path: Path) -> None:
    """Bars of the measured times, one color for each engine, with the spread of the runs.

    Wall time is drawn only if the program times nothing itself, because in short runs most of it is start-up.
    """
    times = shown_times(report)
    engines = [name for name in report["engines"] if any(name in report["summary"][t] for t in times)]
    figure, axes = plt.subplots(figsize=(max(6.0, 1.2 + 1.5 * len(times)), 4.5), layout="constrained")
    width = 0.8 / max(1, len(engines))
    for index, engine in enumerate(engines):
        shown = [
            (at, report["summary"][t][engine]) for at, t in enumerate(times) if engine in report["summary"][t]
        ]
        positions = [at - 0.4 + width * (index + 0.5) for at, _ in shown]
        medians = [entry["median"] for _, entry in shown]
        spread = [[e["median"] - e["low"] for _, e in shown], [e["high"] - e["median"] for _, e in shown]]
        bars = axes.bar(
            positions,
            medians,
            width,
            yerr=spread,
            capsize=2,
            color=color(engine),
            label=report["engines"][engine]["label"],
        )
        if engine != report["reference"]:
            labels = [f"{(e['ratio'] - 1) * 100:+.0f} %" if e["ratio"] else "" for _, e in shown]
            axes.bar_label(bars, labels=labels, fontsize=8, padding=2)
    axes.set_xticks(range(len(times)), [name.removesuffix("_s").replace("_", " ") for name in times])
    axes.set_ylabel("seconds, median")
    axes.set_title(
        f"{Path(report['program'][0]).name}: {report['lab']['description']}", fontsize=9, wrap=True
    )
    legend_below(figure, axes)
    axes.margins(y=0.15)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def shown_times(report: dict) -> list[str]:
    times = [name for name in report["summary"] if metrics.is_time(name)]
    return [name for name in times if name != metrics.WALL] or times


def overlap(report: dict, path: Path) -> None:
    """Two panels for each operation, as functions of the size: overlap, and total time over the larger of
    compute and wire time."""
    operations = list(dict.fromkeys(row["op"] for row in report["rows"]))
    figure, grid = plt.subplots(
        2,
        len(operations),
        figsize=(max(7.0, 4.2 * len(operations)), 6.5),
        layout="constrained",
        squeeze=False,
    )
    for column, operation in enumerate(operations):
        for engine, rows in _by_engine(report, operation).items():
            sizes = [row["bytes"] for row in rows]
            grid[0][column].plot(
                sizes, [row["overlap_percent"] for row in rows], "o-", color=color(engine), label=engine
            )
            ideal = [row["total_s"] / max(row["compute_s"], row["wire_s"]) for row in rows]
            grid[1][column].plot(sizes, ideal, "o-", color=color(engine), label=engine)
        grid[0][column].set(title=operation, ylim=(-5, 105))
        grid[1][column].axhline(1.0, color="black", linewidth=0.8, linestyle=":")
        _size_axis(grid[0][column], grid[1][column], sizes=sorted({r["bytes"] for r in report["rows"]}))
    grid[0][0].set_ylabel("overlap, %")
    grid[1][0].set_ylabel("total / max(compute, wire)")
    legend_below(figure, grid[0][0])
    finish(figure, report, path)


def series(report: dict, path: Path, key: str, label: str) -> None:
    """One panel for each operation: `key` as a function of the size."""
    operations = list(dict.fromkeys(row["op"] for row in report["rows"]))
    figure, grid = plt.subplots(
        1, len(operations), figsize=(max(7.0, 4.2 * len(operations)), 4), layout="constrained", squeeze=False
    )
    for axes, operation in zip(grid[0], operations, strict=True):
        for engine, rows in _by_engine(report, operation).items():
            axes.plot(
                [row["bytes"] for row in rows],
                [row[key] for row in rows],
                "o-",
                color=color(engine),
                label=engine,
            )
        axes.set(title=operation, yscale="log")
        _size_axis(axes, sizes=sorted({r["bytes"] for r in report["rows"]}))
    grid[0][0].set_ylabel(label)
    legend_below(figure, grid[0][0])
    finish(figure, report, path)


def staging(report: dict, path: Path) -> None:
    """Latency and bandwidth as functions of the size, a line for each path, with the rate of the
    slower link."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
    for name, color in (("direct", _COLORS["offpath"]), ("staged", _COLORS["host+core"])):
        rows = sorted((row for row in report["rows"] if row["path"] == name), key=lambda row: row["bytes"])
        for axes, key in ((left, "latency_s"), (right, "bandwidth_Bps")):
            axes.plot(
                [row["bytes"] for row in rows],
                [row[key] for row in rows],
                "o-",
                color=color,
                label=f"{name}: {report['paths'][name]}",
            )
    if report["slowest_link_Bps"]:
        right.axhline(
            report["slowest_link_Bps"],
            color="black",
            linewidth=0.8,
            linestyle=":",
            label="the slower link's rate",
        )
    left.set(title="latency", yscale="log", ylabel="seconds")
    right.set(title="bandwidth", yscale="log", ylabel="bytes per second")
    _size_axis(left, right, sizes=sorted({row["bytes"] for row in report["rows"]}))
    legend_below(figure, right, columns=1)
    finish(figure, report, path)


def _by_engine(report: dict, operation: str) -> dict[str, list[dict]]:
    found: dict[str, list[dict]] = {}
    for row in report["rows"]:
        if row["op"] == operation:
            found.setdefault(row["engine"], []).append(row)
    return {engine: sorted(rows, key=lambda row: row["bytes"]) for engine, rows in found.items()}


def _size_axis(*many, sizes: list[int]) -> None:
    for axes in many:
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [units.format_size(size) for size in sizes], fontsize=8)
        axes.minorticks_off()
        axes.set_xlabel("bytes")
        axes.grid(alpha=0.3)


def legend_below(figure, axes, columns: int = 3) -> None:
    """A legend below all panels, where it hides no data."""
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=columns, fontsize=8)


def finish(figure, report: dict, path: Path) -> None:
    figure.suptitle("\n".join(textwrap.wrap(report["lab"]["description"], 90)), fontsize=9)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def soak(report: dict, path: Path) -> None:
    """Above, the time of each run, coloured by its outcome; below, memory and descriptors of the daemons, all
    over the minutes since the soak began. A line ends where its daemon did."""
    colors = {
        "finished_right": "#2a9d8f",
        "ended_with_explanation": "#e9c46a",
        "ended_without_explanation": "#f4a261",
        "hung": "#d00000",
        "wrong": "#6a040f",
    }
    figure, (runs, memory, descriptors) = plt.subplots(
        3, 1, figsize=(9, 8), sharex=True, layout="constrained", height_ratios=[2, 1, 1]
    )
    for outcome, chosen in colors.items():
        rows = [row for row in report["rows"] if row["outcome"] == outcome]
        if rows:
            label = f"{outcome.replace('_', ' ')} ({len(rows)})"
            runs.plot(
                [row["began_s"] / 60 for row in rows],
                [row["seconds"] / row["normal_s"] for row in rows],
                ".",
                color=chosen,
                label=label,
            )
    runs.set_ylabel("time / time without a fault")
    runs.legend(fontsize=8)
    runs.set_title(f"{report['runs']} runs with {report['faults']} faults, seed {report['seed']}", fontsize=9)
    nodes = list(dict.fromkeys(life["node"] for life in report["lives"]))
    named: set[str] = set()
    for life in report["lives"]:
        if life["samples"]:
            style = {"color": f"C{nodes.index(life['node'])}", "lw": 0.8, "ms": 2}
            style["label"] = None if life["node"] in named else life["node"]
            named.add(life["node"])
            _, resident, open_files, _, at_s = zip(*life["samples"], strict=True)
            minutes = [second / 60 for second in at_s]
            memory.plot(minutes, [value / 2**20 for value in resident], ".-", **style)
            descriptors.plot(minutes, open_files, ".-", **style)
    if named:
        memory.legend(fontsize=8)
    memory.set_ylabel("daemon, MiB")
    descriptors.set_ylabel("daemon, descriptors")
    descriptors.set_xlabel("minutes since the soak began")
    figure.savefig(path, dpi=150)
    plt.close(figure)
