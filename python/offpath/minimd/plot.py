"""The pictures of the studies, laid out like the papers' figures."""

import textwrap
from pathlib import Path

import matplotlib.pyplot as plt

from offpath.minimd import plot_model
from offpath.minimd.case import HOSTS, LABELS, PAPER, TOGETHER
from offpath.minimd.panels import COLORS, SERIES, by_name, grid_of, lines, nodes_text, values, where

_PARTS = {"force": "#2a9d8f", "neigh": "#e9c46a", "comm": "#e76f51", "other": "#cccccc"}


def draw(report: dict, path: Path) -> None:
    figure = _FIGURES[report["study"].removeprefix("minimd-")](report["rows"])
    text = (
        f"{report['study']} ({report['figure']}): {report['lab']['description']}; medians of {report['runs']}"
    )
    figure.suptitle("\n".join(textwrap.wrap(text, int(figure.get_figwidth() * 17))), fontsize=8)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _slowdown(rows: list[dict]):
    nodes, slowness = values(rows, "nodes"), values(rows, "device_slowness")
    figure, grid = grid_of(len(slowness), len(nodes))
    for r, factor in enumerate(slowness):
        for c, count in enumerate(nodes):
            axes = grid[r][c]
            lines(
                axes,
                where(rows, nodes=count, device_slowness=factor),
                "atoms",
                "slowdown",
                "interval",
                lambda n: f"every {n}",
            )
            axes.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
            axes.axhspan(
                1.64, 2.53, color="black", alpha=0.06, label="the paper's range" if (r, c) == (0, 0) else None
            )
            axes.set(title=f"{nodes_text(count)}, forces {factor} x as slow", ylim=(0, None))
            by_name(axes, values(rows, "atoms"), "atoms")
    grid[0][0].set_ylabel("devices' time / hosts' time")
    grid[0][0].legend(fontsize=8)
    return figure


def _breakdown(rows: list[dict]):
    nodes, intervals, atoms = values(rows, "nodes"), values(rows, "interval"), values(rows, "atoms")
    figure, grid = grid_of(len(nodes), len(intervals), width=2.6)
    for r, count in enumerate(nodes):
        for c, interval in enumerate(intervals):
            axes, shown = grid[r][c], where(rows, nodes=count, interval=interval)
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
            axes.set(title=f"{nodes_text(count)}, every {interval}", ylim=(0, 100))
            by_name(axes, atoms, "atoms")
        grid[r][0].set_ylabel("% of the hosts' time")
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
    return figure


def _bound(rows: list[dict]):
    nodes = values(rows, "nodes")
    figure, grid = grid_of(1, len(nodes))
    for axes, count in zip(grid[0], nodes, strict=True):
        lines(axes, where(rows, nodes=count), "atoms", "bound_percent", "interval", lambda n: f"every {n}")
        axes.set(title=nodes_text(count), ylim=(0, None))
        by_name(axes, values(rows, "atoms"), "atoms")
    grid[0][0].set_ylabel("communication, % of the hosts' time")
    grid[0][0].legend(fontsize=8)
    return figure


def _devices(rows: list[dict]):
    intervals, atoms = values(rows, "interval"), values(rows, "atoms")
    figure, grid = grid_of(len(intervals), len(atoms))
    for r, interval in enumerate(intervals):
        for c, count in enumerate(atoms):
            axes = grid[r][c]
            shown = where(rows, interval=interval, atoms=count)
            lines(
                axes,
                shown,
                "devices",
                "speedup_over_host",
                "threads",
                lambda n: f"{n} thread{'s' if n > 1 else ''} a device",
            )
            axes.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
            axes.set(title=f"{count:,} atoms, every {interval}", ylim=(0, None))
            by_name(axes, values(rows, "devices"), "devices")
        grid[r][0].set_ylabel("one host's time / devices' time")
    grid[0][0].legend(fontsize=8)
    return figure


def _offpath(rows: list[dict]):
    """A row of panels for each scheme, a column for each number of nodes."""
    schemes = [scheme for scheme in values(rows, "scheme") if scheme != HOSTS]
    nodes, atoms, slowness = (
        values(rows, "nodes"),
        values(rows, "atoms"),
        values(where(rows, scheme=PAPER), "device_slowness"),
    )
    figure, grid = grid_of(len(schemes), len(nodes), height=2.6)
    improvements = [row["improvement_percent"] for row in rows]
    for r, scheme in enumerate(schemes):
        for c, count in enumerate(nodes):
            axes, shown = grid[r][c], where(rows, scheme=scheme, nodes=count)
            factors = [value for value in slowness if value in values(shown, "device_slowness")] or [1]
            series = [(factor, n) for factor in factors for n in values(shown, "interval")]
            width = 0.8 / len(series)
            for index, (factor, n) in enumerate(series):
                bars = where(shown, device_slowness=factor, interval=n)
                at = [atoms.index(row["atoms"]) - 0.4 + width * (index + 0.5) for row in bars]
                drawn = axes.bar(
                    at,
                    [row["improvement_percent"] for row in bars],
                    width,
                    color=SERIES[index % len(SERIES)],
                    label=f"every {n}" + (f", {factor} x slower" if len(factors) > 1 else ""),
                )
                axes.bar_label(drawn, fmt="%.0f", fontsize=7, padding=1)
            axes.axhline(0.0, color="black", linewidth=0.8)
            axes.set(
                title=f"{LABELS[scheme]}, {nodes_text(count)}",
                ylim=(min(0.0, *improvements) * 1.2, max(10.0, *improvements) * 1.2),
            )
            axes.title.set_fontsize(9)
            by_name(axes, atoms, "atoms" if r == len(schemes) - 1 else "")
        grid[r][0].set_ylabel("less time than hosts only, %", fontsize=8)
    figure.legend(*grid[-1][0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=8)
    return figure


def _tdr(rows: list[dict]):
    """Above, the whole run, as in the paper. Below, the first steps, before trajectories decorrelate."""
    skins = values(rows, "skin")
    kinds = (("tdr", "whole run"), ("tdr_300", "first 300 steps"))
    atoms, nodes = values(rows, "atoms")[-1], values(rows, "nodes")[-1]
    figure, grid = grid_of(len(kinds), len(skins), height=2.8)
    for r, (key, name) in enumerate(kinds):
        largest = max(abs(row[key]) + row[f"{key}_error"] for row in rows)
        for c, skin in enumerate(skins):
            axes, shown = grid[r][c], where(rows, skin=skin, atoms=atoms, nodes=nodes)
            intervals = sorted(values(shown, "interval"))
            for index, scheme in enumerate(values(shown, "scheme")):
                line = where(shown, scheme=scheme)
                at = [intervals.index(row["interval"]) + 0.08 * (index - 1) for row in line]
                axes.errorbar(
                    at,
                    [row[key] for row in line],
                    [row[f"{key}_error"] for row in line],
                    fmt="o-",
                    capsize=3,
                    markersize=4,
                    color=COLORS[scheme],
                    label="baseline" if scheme == HOSTS else LABELS[scheme],
                )
            axes.axhline(0.0, color="black", linewidth=0.8, linestyle=":")
            axes.set(title=f"skin {skin:g}, {name}", ylim=(-1.1 * largest or -1, 1.1 * largest or 1))
            axes.title.set_fontsize(9)
            by_name(axes, intervals, "re-neighbouring interval" if r else "")
        grid[r][0].set_ylabel("TDR, temperature a step", fontsize=8)
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    return figure


def _manual(rows: list[dict]):
    """Columns: total, forces, communication. Rows: as functions of the atoms and of the intensity, for each
    number of nodes."""
    kinds = (("total_s", "total"), ("force_s", "forces"), ("comm_s", "communication"))
    first = rows[0]["intensity"]
    panels = []
    for nodes in values(rows, "nodes"):
        by_atoms = where(rows, nodes=nodes, intensity=first, interval=rows[0]["interval"])
        panels.append((f"{nodes_text(nodes)}, intensity {first}", by_atoms, "atoms"))
        largest = by_atoms[-1]["atoms"]
        by_intensity = where(rows, nodes=nodes, atoms=largest, interval=rows[0]["interval"])
        if len(values(by_intensity, "intensity")) > 1:
            panels.append((f"{nodes_text(nodes)}, {largest:,} atoms", by_intensity, "intensity"))
    figure, grid = grid_of(len(panels), len(kinds), height=2.8)
    for r, (name, shown, x) in enumerate(panels):
        places = values(shown, x)
        for c, (key, what) in enumerate(kinds):
            axes = grid[r][c]
            for scheme in values(shown, "scheme"):
                line = where(shown, scheme=scheme)
                axes.plot(
                    [places.index(row[x]) for row in line],
                    [row[key] for row in line],
                    "o-",
                    color=COLORS[scheme],
                    label=LABELS[scheme],
                )
            axes.set(title=f"{what}: {name}", ylim=(0, None))
            axes.title.set_fontsize(9)
            by_name(axes, places, x if x == "atoms" else "evaluations of each pair's force")
        grid[r][0].set_ylabel("seconds")
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8)
    return figure


def _halo(rows: list[dict]):
    """A panel for each number of nodes: the time that cores did not compute, for each size, with a bar for
    each scheme."""
    panels = list(dict.fromkeys((row["nodes"], row["interval"]) for row in rows))
    schemes = [scheme for scheme in values(rows, "scheme") if scheme != TOGETHER]
    atoms = values(rows, "atoms")
    figure, grid = grid_of(1, len(panels), width=4.2)
    for axes, (nodes, interval) in zip(grid[0], panels, strict=True):
        width = 0.8 / len(schemes)
        for index, scheme in enumerate(schemes):
            bars = where(rows, nodes=nodes, interval=interval, scheme=scheme)
            at = [atoms.index(row["atoms"]) - 0.4 + width * (index + 0.5) for row in bars]
            drawn = axes.bar(
                at,
                [row["exposed_percent"] or 0.0 for row in bars],
                width,
                color=COLORS[scheme],
                label=LABELS[scheme],
            )
            axes.bar_label(drawn, fmt="%.0f", fontsize=7, padding=1)
        axes.set(title=f"{nodes_text(nodes)}, every {interval}", ylim=(0, None))
        by_name(axes, atoms, "atoms")
    grid[0][0].set_ylabel("exposed communication, % of the total", fontsize=8)
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8)
    return figure


_FIGURES = {
    "slowdown": _slowdown,
    "breakdown": _breakdown,
    "devices": _devices,
    "offpath": _offpath,
    "bound": _bound,
    "tdr": _tdr,
    "model": plot_model.model,
    "auxiliary": plot_model.auxiliary,
    "manual": _manual,
    "halo": _halo,
}
