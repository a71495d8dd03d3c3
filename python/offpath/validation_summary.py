"""What the comparison of the simulator with the lab comes to: medians and percentiles of errors, as text."""

import statistics
from collections.abc import Collection, Mapping

from rich.table import Table

from offpath import console, units


def error_of(simulated: float, measured: float) -> float:
    return simulated / measured - 1


def summary(rows: list[dict], group_names: Mapping[str, Collection[str]]) -> dict:
    """The median and the 90th percentile of the errors' sizes, in percent, of all rows, of each group of
    sets, and by engine. And how far the lab's rounds differ from each other."""

    def of(chosen: list[dict]) -> dict:
        sizes = sorted(abs(row["error"]) for row in chosen)
        if not sizes:
            return {}
        ninth = sizes[min(len(sizes) - 1, int(0.9 * len(sizes)))]
        return {
            "configurations": len(sizes),
            "median_percent": 100 * statistics.median(sizes),
            "p90_percent": 100 * ninth,
        }

    engines = sorted({row["engine"] for row in rows})
    rounds = {
        name: of([{"error": error} for row in rows if row["engine"] == name for error in round_errors(row)])
        for name in engines
    }
    groups = {name: [row for row in rows if row["set"] in sets] for name, sets in group_names.items()}
    return of(rows) | {
        "groups": {
            name: of(chosen)
            | {"engines": {engine: of([r for r in chosen if r["engine"] == engine]) for engine in engines}}
            for name, chosen in groups.items()
            if chosen
        },
        "engines": {name: of([r for r in rows if r["engine"] == name]) for name in engines},
        "rounds": {name: found for name, found in rounds.items() if found},
    }


def round_errors(row: Mapping) -> list[float]:
    """How far each round of the lab is from the median of its other rounds, as an error of the simulator."""
    times = row.get("rounds_s", [])
    if len(times) < 2:
        return []
    return [error_of(time, statistics.median(times[:i] + times[i + 1 :])) for i, time in enumerate(times)]


def show(found: Mapping) -> None:
    table = Table(title=f"the lab beside the simulator, platform {found['platform']}", title_justify="left")
    for column in ("lab", "operation"):
        table.add_column(column, no_wrap=True)
    for column in ("measured", "simulated", "error"):
        table.add_column(column, justify="right")
    for row in found["rows"]:
        table.add_row(
            row["lab"],
            f"{row['op']} {units.format_size(row['bytes'])}" if row["bytes"] else row["op"],
            units.format_seconds(row["measured_s"]),
            units.format_seconds(row["simulated_s"]),
            f"{100 * row['error']:+.0f} %",
        )
    console.out.print(table)
    parts = [("all", found), *found["engines"].items()]
    if len(found["groups"]) > 1:
        for name, group in found["groups"].items():
            parts += [(name, group), *((f"{name}, {engine}", of) for engine, of in group["engines"].items())]
    for name, part in parts:
        if not part:
            continue
        console.out.print(
            f"{name}: {part['configurations']} configurations, median error {part['median_percent']:.1f} %, "
            f"90th percentile {part['p90_percent']:.1f} %"
        )
    for name, part in found["rounds"].items():
        console.out.print(
            f"the lab's rounds, {name}: each differs from the median of the others by "
            f"{part['median_percent']:.1f} % in the median, 90th percentile {part['p90_percent']:.1f} %"
        )
