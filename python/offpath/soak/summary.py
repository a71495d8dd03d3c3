"""The report of a soak, from its rows: counts, times, the growth of daemons, and what is printed."""

import statistics
from pathlib import Path

from rich.table import Table

from offpath import console
from offpath.soak import outcome, plan
from offpath.soak.growth import Life, growth, longest

_PARTS = ("fault", "mpi", "devices")  # the counts are also given for each of these
_LONG_LIVED_RUNS = 5  # the growth of daemons that served at least so many runs is reported


def is_good(row: dict) -> bool:
    return row["outcome"] in outcome.GOOD and not row["left_behind"] and not row["daemons_lost"]


def report(seed: int, rows: list[dict], lives: list[Life]) -> dict:
    struck = [row for row in rows if row["fault"] != plan.NONE and row["at_s"] is not None]
    recovered = [row["recovery_s"] for row in struck if row["recovery_s"] is not None]
    ended = [row["seconds"] - row["at_s"] for row in struck if row["outcome"] == outcome.EXPLAINED]
    return {
        "seed": seed,
        "runs": len(rows),
        "faults": len(struck),
        **counts(rows),
        "worst_recovery_s": max(recovered, default=0.0),
        "median_recovery_s": statistics.median(recovered) if recovered else 0.0,
        "worst_end_s": max(ended, default=0.0),
        **{f"by_{key}": _by(rows, key) for key in _PARTS},
        "growth": growth(lives, _LONG_LIVED_RUNS),
        "lives": [
            {
                "node": life.node,
                "samples": [
                    [sample.run, sample.resident_bytes, sample.descriptors, sample.threads, sample.at_s]
                    for sample in life.samples
                ],
            }
            for life in lives
        ],
        "rows": rows,
        "exit_code": 0 if all(map(is_good, rows)) else 1,
    }


def _by(rows: list[dict], key: str) -> dict[str, dict[str, int]]:
    """The counts of the runs, by what they have there."""
    return {
        value: counts([row for row in rows if row[key] == value])
        for value in dict.fromkeys(row[key] for row in rows)
    }


def counts(rows: list[dict]) -> dict[str, int]:
    found = {name: sum(row["outcome"] == name for row in rows) for name in outcome.OUTCOMES}
    return found | {
        "left_behind": sum(bool(row["left_behind"]) for row in rows),
        "daemons_lost": sum(bool(row["daemons_lost"]) for row in rows),
    }


def line(row: dict) -> str:
    """One row as a line."""
    fault = row["fault"]
    if fault != plan.NONE:
        lasts = f" for {row['lasts_s']:.1f} s" if row["lasts_s"] is not None else ""
        when = f" after {row['at_s']:.1f} s" if row["at_s"] is not None else ", too late"
        fault = f"{fault} of {row['victim']}{lasts}{when}"
    words = [f"run {row['run']}: {row['program']}, {row['devices']} devices, {fault}"]
    words[0] += ": " + row["outcome"].replace("_", " ")
    words[0] += f" in {row['seconds']:.1f} s (normally {row['normal_s']:.1f} s)"
    words += filter(None, [row["message"], *row["left_behind"], *row["daemons_lost"]])
    return "; ".join(words)


def show(found: dict) -> None:
    """Prints a table of the outcomes by fault, library, and where devices run."""
    names = [*outcome.OUTCOMES, "left_behind", "daemons_lost"]
    table = Table(title=f"{found['runs']} runs, seed {found['seed']}", title_justify="left")
    table.add_column("")
    table.add_column("runs", justify="right")
    for name in names:
        table.add_column(name.replace("_", " "), justify="right")
    for part in _PARTS:
        for value, counted in found[f"by_{part}"].items():
            _add_row(table, f"{part}: {value}", counted, names)
        table.add_section()
    _add_row(table, "all", found, names)
    console.out.print(table)
    console.out.print(
        f"Runs that finished in spite of a fault took up to {found['worst_recovery_s']:.1f} s longer than"
        f" without one (median {found['median_recovery_s']:.1f} s); the others ended within"
        f" {found['worst_end_s']:.1f} s of it.",
        soft_wrap=True,
    )
    for each in longest(found["growth"]):
        _show_growth(each)


def _add_row(table: Table, title: str, counted: dict, names: list[str]) -> None:
    runs = sum(counted[name] for name in outcome.OUTCOMES)
    table.add_row(title, str(runs), *(str(counted[name]) for name in names))


def _show_growth(each: dict) -> None:
    """Prints a line for memory and one for descriptors."""
    console.out.print(
        f"The daemon of {each['node']} served runs {each['first_run']} to {each['last_run']}, for"
        f" {each['seconds'] / 60:.1f} minutes:",
        soft_wrap=True,
    )
    for what, key, slope, unit in (
        ("memory", "resident_bytes", "bytes_per_hour", 2**20),
        ("descriptors", "descriptors", "descriptors_per_hour", 1),
    ):
        digits = 1 if unit > 1 else 0
        held = " to ".join(f"{value / unit:.{digits}f}" for value in each[key])
        name = f"{what}, MiB" if unit > 1 else what
        console.out.print(f"  {name}: {held}; {_slope(each, slope, unit)}", soft_wrap=True)


def _slope(each: dict, key: str, unit: int) -> str:
    if each[f"{key}_error"] is None:
        return "too short for a slope"
    return f"per hour {each[key] / unit:+.2f}, plus or minus {each[f'{key}_error'] / unit:.2f}"


def draw(found: dict, path: Path) -> None:
    from offpath import plots  # matplotlib is slow to load

    plots.soak(found, path)
