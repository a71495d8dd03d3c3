"""The page of a benchmark's or a comparison's JSON file."""

import re
import tempfile
from collections.abc import Callable
from pathlib import Path

from offpath import bench, compare, metrics, reports, units
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.lab import mpi
from offpath.report import html
from offpath.report.html import escape

_DRAWN = ("overlap", "latency", "bandwidth")
_MOST_ROWS = 500


def page(path: Path) -> str:
    found = reports.read(path)
    try:
        if isinstance(found, dict) and "summary" in found and "engines" in found:
            return _comparison(found)
        if isinstance(found, dict) and isinstance(found.get("rows"), list) and found["rows"]:
            return _benchmark(found, path.stem)
    except (KeyError, TypeError, AttributeError) as error:
        raise OffpathError(Code.INPUT_FILE, f"{path} is damaged: {error!r}") from error
    raise OffpathError(
        Code.INPUT_FILE,
        f"{path} holds no benchmark that a page can show",
        "name a file of offpath bench --json or of offpath lab compare --json, or a directory of --trace",
    )


def _comparison(found: dict) -> str:
    name = Path(found["program"][0]).name
    time = compare.main_time(found["summary"]) if found["summary"] else metrics.WALL
    tiles = [
        html.tile(f"{100 * (entry['ratio'] - 1):+.0f} %", f"{engine} against {found['reference']} ({time})")
        for engine, entry in found["summary"].get(time, {}).items()
        if engine != found["reference"] and entry.get("ratio")
    ]
    sections = [
        f"<h1>{escape(name)}</h1><p class='quiet'>{escape(found['lab']['description'])}</p>",
        f"<p class='quiet'><code>{escape(' '.join(found['program']))}</code></p>",
        f"<div class='tiles'>{''.join(tiles)}</div>",
        _figure(lambda to: compare.draw(found, to)),
        "<h2>What this says</h2>",
        _list(compare.verdicts(found) if found["summary"] else ["No run succeeded."]),
        "<h2 id='functions'>Times, medians</h2>",
        _medians(found),
        _list([f"{name}: {one['label']}" for name, one in found["engines"].items()]),
    ]
    if found["differences"]:
        sections += ["<h2>Runs that differ</h2>", _list(found["differences"])]
    stayed = dict.fromkeys(run["summary_line"] for run in found["runs"] if run.get("summary_line"))
    if stayed:
        sections += ["<h2 id='stayed'>What went to the device</h2>", _list(list(stayed)[:1])]
    return html.page(f"offpath: {name}", sections)


def _medians(found: dict) -> str:
    engines = list(found["engines"])
    rows = []
    for measurement, entries in found["summary"].items():
        cells = [f"<code>{escape(measurement)}</code>"]
        for engine in engines:
            entry = entries.get(engine)
            if entry is None:
                cells.append("-")
                continue
            is_time = metrics.is_time(measurement)
            value = units.format_seconds(entry["median"]) if is_time else f"{entry['median']:.4g}"
            ratio = entry.get("ratio")
            cells.append(
                value + (f" ({ratio:.2f})" if ratio and engine != found["reference"] and is_time else "")
            )
        rows.append(cells)
    return html.table(["measurement", *(f"#{escape(engine)}" for engine in engines)], rows) + (
        f"<p class='quiet'>In brackets: the ratio to {escape(found['reference'])}.</p>"
    )


def _benchmark(found: dict, stem: str) -> str:
    kind = str(found.get("benchmark", stem))
    lab = found.get("lab", {}).get("description", "")
    sections = [f"<h1>{escape(kind)}</h1><p class='quiet'>{escape(lab)}</p>"]
    if kind in _DRAWN:
        sections.append(_figure(lambda to: bench.draw(found, to)))
        sections += ["<h2 id='changes'>What to change</h2>", _list(_changes(found, kind))]
    if kind == "overlap":
        sections += ["<h2 id='overlap'>Overlap by size</h2>", _overlap(found["rows"])]
    sections += ["<h2>All rows</h2>", _rows(found["rows"])]
    engines = found.get("engines")
    if isinstance(engines, dict):
        sections.append(_list([f"{name}: {label}" for name, label in engines.items()]))
    return html.page(f"offpath: {kind}", sections)


def _changes(found: dict, kind: str) -> list[str]:
    """Where the device is slower than the host's MPI, and where it hides little."""
    key, larger_is_better = {
        "overlap": ("total_s", False), "latency": ("pure_s", False), "bandwidth": ("bandwidth_Bps", True),
    }[kind]  # fmt: skip
    values = {(row["op"], row["bytes"], row["engine"]): row for row in found["rows"]}
    lines, fast = [], 0
    for (op, size, engine), row in values.items():
        host = values.get((op, size, mpi.HOST.name))
        if engine != mpi.OFFPATH.name or host is None:
            continue
        ratio = host[key] / row[key] if larger_is_better else row[key] / host[key]
        if ratio > 1.05:
            lines.append(
                f"`{op}` of {units.format_bytes(size)} takes {ratio:.2f} times as long with offpath: leave it"
                f" on the host with `OFFPATH_MIN_BYTES` above {units.format_size(size)}, or let"
                " `offpath tune` choose."
            )
        elif kind == "overlap" and row["overlap_percent"] < 50 and size >= 64 << 10:
            lines.append(f"`{op}` of {units.format_bytes(size)} hides {row['overlap_percent']:.0f} % only.")
        else:
            fast += 1
    if fast:
        lines.append(f"{fast} operations and sizes are as fast as on the host's MPI or faster.")
    return lines or ["No row compares offpath with the host's MPI."]


def _overlap(rows: list[dict]) -> str:
    from offpath import plots  # matplotlib is slow to load

    cells = [
        [
            f"<code>{escape(row['op'])}</code>",
            f"{units.format_bytes(row['bytes'])}",
            escape(row["engine"]),
            html.bar(row["overlap_percent"] / 100, plots.color(row["engine"])),
            f"{row['overlap_percent']:.0f} %",
            units.format_seconds(row["compute_s"]),
            units.format_seconds(row["total_s"]),
        ]
        for row in rows
    ]
    return html.table(
        ["operation", "#size", "engine", "overlap", "#", "#computation", "#with communication"], cells
    )


def _rows(rows: list[dict]) -> str:
    """All columns that hold one value."""
    columns = [
        key
        for key in dict.fromkeys(key for row in rows for key in row)
        if not any(isinstance(row.get(key), (dict, list)) for row in rows)
    ]
    cells = [[_value(key, row.get(key)) for key in columns] for row in rows[:_MOST_ROWS]]
    left_out = f"<p class='quiet'>{len(rows) - _MOST_ROWS} more rows are left out.</p>"
    return html.table([f"#{escape(key)}" for key in columns], cells) + (
        left_out if len(rows) > _MOST_ROWS else ""
    )


def _value(key: str, value: object) -> str:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return escape("" if value is None else str(value))
    if isinstance(value, (int, float)):
        if key == "bytes":
            return f"{units.format_bytes(int(value))}"
        return units.format_seconds(value) if key.endswith("_s") else f"{value:.4g}"
    return escape(str(value))


def _list(lines: list[str]) -> str:
    return "<ul>" + "".join(f"<li>{html.text(line)}</li>" for line in lines) + "</ul>"


def _figure(draw: Callable[[Path], None]) -> str:
    """A picture as SVG within the page."""
    with tempfile.TemporaryDirectory(prefix="offpath-report-") as folder:
        path = Path(folder) / "figure.svg"
        draw(path)
        text = path.read_text()
    # Metadata names addresses, though nothing loads them.
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    return f"<figure>{text}</figure>"
