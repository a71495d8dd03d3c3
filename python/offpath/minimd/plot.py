"""The pictures of the studies, laid out like the papers' figures."""

import textwrap
from collections.abc import Callable
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt

from offpath.minimd.case import (
    ALL,
    BALANCED,
    BLOCKING,
    DEVICES,
    HALO,
    HOSTS,
    LABELS,
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

_COLORS = {
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
_SERIES = ("#577590", "#2a9d8f", "#e9a820", "#e76f51", "#6a4c93", "#8d99ae", "#333333")
_PARTS = {"force": "#2a9d8f", "neigh": "#e9c46a", "comm": "#e76f51", "other": "#cccccc"}


def draw(report: dict, path: Path) -> None:
    figure = _FIGURES[report["study"].removeprefix("minimd-")](report["rows"])
    text = (
        f"{report['study']} ({report['figure']}): {report['lab']['description']}; medians of {report['runs']}"
    )
    figure.suptitle("\n".join(textwrap.wrap(text, int(figure.get_figwidth() * 17))), fontsize=8)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _values(rows: list[dict], key: str) -> list:
    return list(dict.fromkeys(row[key] for row in rows))


def _where(rows: list[dict], **fixed) -> list[dict]:
    return [row for row in rows if all(row[key] == value for key, value in fixed.items())]


def _grid(rows: int, columns: int, width: float = 3.8, height: float = 3.3):
    return plt.subplots(
        rows,
        columns,
        figsize=(max(6.4, width * columns + 0.6), height * rows + 0.9),
        layout="constrained",
        squeeze=False,
    )


def _by_name(axes, values: list, label: str) -> None:
    axes.set_xticks(
        range(len(values)),
        [f"{value:,}" if isinstance(value, int) else f"{value:g}" for value in values],
        fontsize=8,
    )
    axes.set_xlabel(label)
    axes.grid(axis="y", alpha=0.3)


def _lines(
    axes, rows: list[dict], x: str, y: str, split: str, naming: Callable, ticks: list | None = None
) -> None:
    """Draws one line for each value of `split`, with the values of `x` in equal steps. Rows from a simulator
    have hollow marks."""
    places = ticks or _values(rows, x)
    for color, value in zip(_SERIES * 9, _values(rows, split), strict=False):
        line = _where(rows, **{split: value})
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


def _slowdown(rows: list[dict]):
    nodes, slowness = _values(rows, "nodes"), _values(rows, "device_slowness")
    figure, grid = _grid(len(slowness), len(nodes))
    for r, factor in enumerate(slowness):
        for c, count in enumerate(nodes):
            axes = grid[r][c]
            _lines(
                axes,
                _where(rows, nodes=count, device_slowness=factor),
                "atoms",
                "slowdown",
                "interval",
                lambda n: f"every {n}",
            )
            axes.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
            axes.axhspan(
                1.64, 2.53, color="black", alpha=0.06, label="the paper's range" if (r, c) == (0, 0) else None
            )
            axes.set(title=f"{_nodes(count)}, forces {factor} x as slow", ylim=(0, None))
            _by_name(axes, _values(rows, "atoms"), "atoms")
    grid[0][0].set_ylabel("devices' time / hosts' time")
    grid[0][0].legend(fontsize=8)
    return figure


def _breakdown(rows: list[dict]):
    nodes, intervals, atoms = _values(rows, "nodes"), _values(rows, "interval"), _values(rows, "atoms")
    figure, grid = _grid(len(nodes), len(intervals), width=2.6)
    for r, count in enumerate(nodes):
        for c, interval in enumerate(intervals):
            axes, shown = grid[r][c], _where(rows, nodes=count, interval=interval)
            bottom = [0.0] * len(shown)
            for part, color in _PARTS.items():
                shares = [row[f"{part}_percent"] for row in shown]
                axes.bar(
                    [atoms.index(row["atoms"]) for row in shown],
                    shares,
                    0.7,
                    bottom=bottom,
                    color=color,
                    label=part,
                )
                bottom = [low + share for low, share in zip(bottom, shares, strict=True)]
            axes.set(title=f"{_nodes(count)}, every {interval}", ylim=(0, 100))
            _by_name(axes, atoms, "atoms")
        grid[r][0].set_ylabel("% of the hosts' time")
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
    return figure


def _bound(rows: list[dict]):
    nodes = _values(rows, "nodes")
    figure, grid = _grid(1, len(nodes))
    for axes, count in zip(grid[0], nodes, strict=True):
        _lines(axes, _where(rows, nodes=count), "atoms", "bound_percent", "interval", lambda n: f"every {n}")
        axes.set(title=_nodes(count), ylim=(0, None))
        _by_name(axes, _values(rows, "atoms"), "atoms")
    grid[0][0].set_ylabel("communication, % of the hosts' time")
    grid[0][0].legend(fontsize=8)
    return figure


def _devices(rows: list[dict]):
    intervals, atoms = _values(rows, "interval"), _values(rows, "atoms")
    figure, grid = _grid(len(intervals), len(atoms))
    for r, interval in enumerate(intervals):
        for c, count in enumerate(atoms):
            axes = grid[r][c]
            shown = _where(rows, interval=interval, atoms=count)
            _lines(
                axes,
                shown,
                "devices",
                "speedup_over_host",
                "threads",
                lambda n: f"{n} thread{'s' if n > 1 else ''} a device",
            )
            axes.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
            axes.set(title=f"{count:,} atoms, every {interval}", ylim=(0, None))
            _by_name(axes, _values(rows, "devices"), "devices")
        grid[r][0].set_ylabel("one host's time / devices' time")
    grid[0][0].legend(fontsize=8)
    return figure


def _offpath(rows: list[dict]):
    """A row of panels for each scheme, a column for each number of nodes."""
    schemes = [scheme for scheme in _values(rows, "scheme") if scheme != HOSTS]
    nodes, atoms, slowness = (
        _values(rows, "nodes"),
        _values(rows, "atoms"),
        _values(_where(rows, scheme=PAPER), "device_slowness"),
    )
    figure, grid = _grid(len(schemes), len(nodes), height=2.6)
    improvements = [row["improvement_percent"] for row in rows]
    for r, scheme in enumerate(schemes):
        for c, count in enumerate(nodes):
            axes, shown = grid[r][c], _where(rows, scheme=scheme, nodes=count)
            factors = [value for value in slowness if value in _values(shown, "device_slowness")] or [1]
            series = [(factor, n) for factor in factors for n in _values(shown, "interval")]
            width = 0.8 / len(series)
            for index, (factor, n) in enumerate(series):
                bars = _where(shown, device_slowness=factor, interval=n)
                at = [atoms.index(row["atoms"]) - 0.4 + width * (index + 0.5) for row in bars]
                drawn = axes.bar(
                    at,
                    [row["improvement_percent"] for row in bars],
                    width,
                    color=_SERIES[index % len(_SERIES)],
                    label=f"every {n}" + (f", {factor} x slower" if len(factors) > 1 else ""),
                )
                axes.bar_label(drawn, fmt="%.0f", fontsize=7, padding=1)
            axes.axhline(0.0, color="black", linewidth=0.8)
            axes.set(
                title=f"{LABELS[scheme]}, {_nodes(count)}",
                ylim=(min(0.0, *improvements) * 1.2, max(10.0, *improvements) * 1.2),
            )
            axes.title.set_fontsize(9)
            _by_name(axes, atoms, "atoms" if r == len(schemes) - 1 else "")
        grid[r][0].set_ylabel("less time than hosts only, %", fontsize=8)
    figure.legend(*grid[-1][0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=8)
    return figure


def _tdr(rows: list[dict]):
    """Above, the whole run, as in the paper. Below, the first steps, before trajectories decorrelate."""
    skins = _values(rows, "skin")
    kinds = (("tdr", "whole run"), ("tdr_300", "first 300 steps"))
    atoms, nodes = _values(rows, "atoms")[-1], _values(rows, "nodes")[-1]
    figure, grid = _grid(len(kinds), len(skins), height=2.8)
    for r, (key, name) in enumerate(kinds):
        largest = max(abs(row[key]) + row[f"{key}_error"] for row in rows)
        for c, skin in enumerate(skins):
            axes, shown = grid[r][c], _where(rows, skin=skin, atoms=atoms, nodes=nodes)
            intervals = sorted(_values(shown, "interval"))
            for index, scheme in enumerate(_values(shown, "scheme")):
                line = _where(shown, scheme=scheme)
                at = [intervals.index(row["interval"]) + 0.08 * (index - 1) for row in line]
                axes.errorbar(
                    at,
                    [row[key] for row in line],
                    [row[f"{key}_error"] for row in line],
                    fmt="o-",
                    capsize=3,
                    markersize=4,
                    color=_COLORS[scheme],
                    label="baseline" if scheme == HOSTS else LABELS[scheme],
                )
            axes.axhline(0.0, color="black", linewidth=0.8, linestyle=":")
            axes.set(title=f"skin {skin:g}, {name}", ylim=(-1.1 * largest or -1, 1.1 * largest or 1))
            axes.title.set_fontsize(9)
            _by_name(axes, intervals, "re-neighbouring interval" if r else "")
        grid[r][0].set_ylabel("TDR, temperature a step", fontsize=8)
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    return figure


def _model(rows: list[dict]):
    """A panel for each size and slowness: total time as a function of the host threads, a color for each
    number of device threads. The dashed lines are the model."""
    panels = list(
        dict.fromkeys((row["nodes"], row["interval"], row["atoms"], row["device_slowness"]) for row in rows)
    )
    columns = min(4, len(panels))
    figure, grid = _grid(-(-len(panels) // columns), columns, width=3.2)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for axes, (nodes, interval, atoms, slowness) in zip(grid.flat, panels, strict=False):
        shown = _where(rows, nodes=nodes, interval=interval, atoms=atoms, device_slowness=slowness)
        threads = _values(shown, "threads")
        if len(threads) == 1 and len(_values(shown, "device_threads")) == 1:
            _one_setting(axes, shown[0])
        else:
            _by_threads(axes, shown, threads)
        axes.set(
            title=f"{_nodes(nodes)}, {atoms:,} atoms, every {interval},\nforces {slowness} x as slow",
            ylim=(0, None),
        )
        axes.title.set_fontsize(8)
        axes.grid(axis="y", alpha=0.3)
    for row in grid:
        row[0].set_ylabel("seconds")
    if len(_values(rows, "threads")) > 1 or len(_values(rows, "device_threads")) > 1:
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
            color=_COLORS[scheme] if scheme else "white",
            edgecolor=_COLORS[PAPER],
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
    for color, count in zip(_SERIES * 9, _values(rows, "device_threads"), strict=False):
        line = _where(rows, device_threads=count)
        at = [threads.index(row["threads"]) for row in line]
        axes.plot(
            at, [row["total_s"] for row in line], "o-", color=color, label=f"off-path, {count} on the device"
        )
        axes.plot(at, [row["predicted_s"] for row in line], "x--", color=color, label="Eq. 3")
        if line[0]["extended_s"]:
            axes.plot(at, [row["extended_s"] for row in line], ":", color=color, label="Eq. 3 and transfers")
    first = _where(rows, device_threads=rows[0]["device_threads"])
    axes.plot(
        [threads.index(row["threads"]) for row in first],
        [row["base_total_s"] for row in first],
        "s-",
        color=_COLORS[HOSTS],
        label="hosts only",
    )
    _by_name(axes, threads, "host threads")


def _auxiliary(rows: list[dict]):
    panels = list(dict.fromkeys((row["nodes"], row["interval"], row["atoms"]) for row in rows))
    figure, grid = _grid(1, len(panels), width=4.6)
    for axes, (nodes, interval, atoms) in zip(grid[0], panels, strict=True):
        shown = _where(
            rows,
            nodes=nodes,
            interval=interval,
            atoms=atoms,
            threads=rows[0]["threads"],
            device_threads=rows[0]["device_threads"],
        )
        slowness = _values(shown, "device_slowness")
        at = range(len(shown))
        axes.plot(at, [row["base_total_s"] for row in shown], "s-", color=_COLORS[HOSTS], label="hosts only")
        axes.plot(at, [row["total_s"] for row in shown], "o-", color=_COLORS[PAPER], label=LABELS[PAPER])
        axes.plot(at, [row["predicted_s"] for row in shown], "x--", color=_COLORS[PAPER], label="Eq. 3")
        if shown[0]["extended_s"]:
            axes.plot(
                at,
                [row["extended_s"] for row in shown],
                ":",
                color=_COLORS[PAPER],
                label="Eq. 3 and transfers",
            )
        axes.set(title=f"{_nodes(nodes)}, {atoms:,} atoms, every {interval}", ylim=(0, None))
        _by_name(
            axes,
            slowness,
            "times that the device's forces take as long as on a host core (1: auxiliary node)",
        )
        axes.xaxis.label.set_fontsize(8)
    grid[0][0].set_ylabel("seconds")
    grid[0][0].legend(fontsize=8)
    return figure


def _manual(rows: list[dict]):
    """Columns: total, forces, communication. Rows: as functions of the atoms and of the intensity, for each
    number of nodes."""
    kinds = (("total_s", "total"), ("force_s", "forces"), ("comm_s", "communication"))
    first = rows[0]["intensity"]
    panels = []
    for nodes in _values(rows, "nodes"):
        by_atoms = _where(rows, nodes=nodes, intensity=first, interval=rows[0]["interval"])
        panels.append((f"{_nodes(nodes)}, intensity {first}", by_atoms, "atoms"))
        largest = by_atoms[-1]["atoms"]
        by_intensity = _where(rows, nodes=nodes, atoms=largest, interval=rows[0]["interval"])
        if len(_values(by_intensity, "intensity")) > 1:
            panels.append((f"{_nodes(nodes)}, {largest:,} atoms", by_intensity, "intensity"))
    figure, grid = _grid(len(panels), len(kinds), height=2.8)
    for r, (name, shown, x) in enumerate(panels):
        places = _values(shown, x)
        for c, (key, what) in enumerate(kinds):
            axes = grid[r][c]
            for scheme in _values(shown, "scheme"):
                line = _where(shown, scheme=scheme)
                axes.plot(
                    [places.index(row[x]) for row in line],
                    [row[key] for row in line],
                    "o-",
                    color=_COLORS[scheme],
                    label=LABELS[scheme],
                )
            axes.set(title=f"{what}: {name}", ylim=(0, None))
            axes.title.set_fontsize(9)
            _by_name(axes, places, x if x == "atoms" else "evaluations of each pair's force")
        grid[r][0].set_ylabel("seconds")
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8)
    return figure


def _halo(rows: list[dict]):
    """A panel for each number of nodes: the time that cores did not compute, for each size, with a bar for
    each scheme."""
    panels = list(dict.fromkeys((row["nodes"], row["interval"]) for row in rows))
    schemes = [scheme for scheme in _values(rows, "scheme") if scheme != TOGETHER]
    atoms = _values(rows, "atoms")
    figure, grid = _grid(1, len(panels), width=4.2)
    for axes, (nodes, interval) in zip(grid[0], panels, strict=True):
        width = 0.8 / len(schemes)
        for index, scheme in enumerate(schemes):
            bars = _where(rows, nodes=nodes, interval=interval, scheme=scheme)
            at = [atoms.index(row["atoms"]) - 0.4 + width * (index + 0.5) for row in bars]
            drawn = axes.bar(
                at,
                [row["exposed_percent"] or 0.0 for row in bars],
                width,
                color=_COLORS[scheme],
                label=LABELS[scheme],
            )
            axes.bar_label(drawn, fmt="%.0f", fontsize=7, padding=1)
        axes.set(title=f"{_nodes(nodes)}, every {interval}", ylim=(0, None))
        _by_name(axes, atoms, "atoms")
    grid[0][0].set_ylabel("exposed communication, % of the total", fontsize=8)
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8)
    return figure


def draw_roofline(report: dict, path: Path) -> None:
    """A panel for each precision. Filled marks: operations per byte that loads and stores move. Hollow marks:
    operations per byte that must come from memory."""
    figure, grid = _grid(1, len(report["peaks"]), width=4.6, height=3.8)
    for axes, peak in zip(grid[0], report["peaks"], strict=True):
        rows = _where(report["rows"], precision=peak["precision"])
        intensities = [row[key] for row in rows for key in ("flops_per_moved_byte", "flops_per_least_byte")]
        span = [min(intensities) / 3, max(intensities) * 3]
        for color, level in zip(("#333333", "#8d99ae", "#a8b0bd", "#c9ced6"), peak["memory"], strict=False):
            at = [span[0], min(span[1], peak["flops_per_s"] / level["bytes_per_s"])]
            if at[1] > at[0]:
                axes.plot(at, [x * level["bytes_per_s"] / 1e9 for x in at], "-", color=color, linewidth=1)
                axes.text(
                    at[0],
                    at[0] * level["bytes_per_s"] / 1e9,
                    f" {level['arrays']}: {level['bytes_per_s'] / 1e9:.0f} GB/s",
                    fontsize=6,
                    color=color,
                    va="bottom",
                )
        axes.axhline(peak["flops_per_s"] / 1e9, color="#333333", linewidth=1)
        axes.text(
            span[1],
            peak["flops_per_s"] / 1e9,
            f"{peak['flops_per_s'] / 1e9:.0f} Gflop/s ",
            fontsize=7,
            ha="right",
            va="bottom",
        )
        for color, row in zip((_SERIES[1], _SERIES[3], _SERIES[4]), rows, strict=False):
            rate = row["flops_per_s"] / 1e9
            axes.plot(
                [row["flops_per_moved_byte"], row["flops_per_least_byte"]],
                [rate, rate],
                ":",
                color=color,
                linewidth=1,
            )
            axes.plot(
                row["flops_per_moved_byte"],
                rate,
                "o",
                color=color,
                label=f"{row['loop']}: {row['ns_per_atom']:.0f} ns an atom",
            )
            axes.plot(row["flops_per_least_byte"], rate, "o", color=color, markerfacecolor="white")
        axes.set(
            xscale="log",
            yscale="log",
            title=f"{peak['precision']}, {rows[0]['lanes']} lanes",
            xlabel="operations a byte: loads and stores (filled), memory (hollow)",
            xlim=span,
        )
        axes.xaxis.label.set_fontsize(8)
        axes.grid(alpha=0.2, which="both")
        axes.legend(fontsize=7, loc="lower right")
    grid[0][0].set_ylabel("Gflop/s")
    figure.suptitle(
        f"minimd's loops over pairs on one core: {report['environment'].get('cpu', '')}", fontsize=8
    )
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _nodes(count: int) -> str:
    return f"{count} node{'s' if count > 1 else ''}"


_FIGURES = {
    "slowdown": _slowdown,
    "breakdown": _breakdown,
    "devices": _devices,
    "offpath": _offpath,
    "bound": _bound,
    "tdr": _tdr,
    "model": _model,
    "auxiliary": _auxiliary,
    "manual": _manual,
    "halo": _halo,
}
