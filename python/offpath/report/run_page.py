"""The page of a traced run."""

import json
from dataclasses import dataclass
from pathlib import Path

from offpath import units
from offpath.report import advice, html, lanes, measures, stayed
from offpath.report.advice import Findings
from offpath.report.html import escape
from offpath.tracing.slices import Trace

_MOST_SLICES = 40_000
_MOST_GROUPS = 64
_MOST_FUNCTIONS = 15


@dataclass(frozen=True)
class Run:
    trace: Trace
    summary: stayed.Summary


def page(run: Run, before: Run | None) -> str:
    trace = run.trace
    earlier = measures.by_function(before.trace) if before is not None else None
    found = Findings(
        trace, measures.by_function(trace), measures.overlap_by_size(trace), measures.wires(trace),
        run.summary.stayed, run.summary.hints, earlier,
    )  # fmt: skip
    name = f"{trace.program} on {units.count(len(trace.ranks), 'rank')}"
    sections = [
        f"<h1>{escape(name)}</h1>",
        f"<p class='quiet'>{_about(run)}</p>",
        _tiles(found),
        _timeline(trace),
        "<h2 id='changes'>What to change</h2>",
        _changes(found),
        "<h2 id='overlap'>Overlap by size</h2>",
        _overlap(found),
        "<h2 id='functions'>Time by function</h2>",
        _functions(found.functions, found.before),
        "<h2 id='stayed'>What stayed on the host, and why</h2>",
        _stayed(run.summary),
        "<h2 id='wires'>Devices and wires</h2>",
        _wires(found),
    ]
    return html.page(f"offpath: {name}", sections)


def _about(run: Run) -> str:
    trace = run.trace
    nodes = len({rank.node for rank in trace.ranks})
    parts = [
        units.count(nodes, "node"), units.count(len(trace.devices), "device"),
        units.count(trace.events, "event"),
        f"{units.format_seconds(trace.duration * 1e-9)} from the first to the last",
    ]  # fmt: skip
    if run.summary.back_end:
        parts.append(f"device back end {run.summary.back_end}")
    if trace.dropped:
        parts.append(f"{trace.dropped} events dropped for lack of room")
    if trace.machines > 1:
        how = "their real-time clocks" if trace.clock_error_ns is None else "messages between them"
        parts.append(f"{trace.machines} machines, aligned by {how}")
    return escape("; ".join(parts)) + "."


def _tiles(found: Findings) -> str:
    inside, outside = measures.inside_and_outside(found.functions)
    tiles = []
    if found.before is not None:
        before = sum(measures.inside_and_outside(found.before))
        change = 100 * ((inside + outside) / before - 1) if before else 0.0
        tiles.append(html.tile(f"{change:+.0f} %", "time of a rank, after against before"))
        tiles.append(html.tile(units.format_seconds(before), "a rank before, without MPI_Init"))
        tiles.append(html.tile(units.format_seconds(inside + outside), "a rank after"))
        inside_before = measures.inside_and_outside(found.before)[0]
        tiles.append(
            html.tile(
                f"{units.format_seconds(inside_before)} → {units.format_seconds(inside)}",
                "of it in calls of MPI",
            )
        )
    elif found.functions:
        tiles.append(html.tile(units.format_seconds(inside + outside), "a rank, without MPI_Init"))
        tiles.append(
            html.tile(f"{100 * inside / max(inside + outside, 1e-9):.0f} %", "of it in calls of MPI")
        )
    active = sum(wire.active_s for wire in found.wires)
    if active and found.functions:
        computed = sum(wire.computed_s for wire in found.wires)
        tiles.append(
            html.tile(
                f"{100 * computed / active:.0f} %", "of the time on the wire, the node's ranks computed"
            )
        )
    at_device, hidden = (sum(getattr(one, key) for one in found.overlaps) for key in ("seconds", "computed"))
    if at_device and found.functions:
        tiles.append(
            html.tile(f"{100 * hidden / at_device:.0f} %", "of the time of operations, their rank computed")
        )
    return "<div class='tiles'>" + "".join(tiles) + "</div>"


def _timeline(trace: Trace) -> str:
    groups = lanes.groups(trace)
    left_out = max(0, len(groups) - _MOST_GROUPS)
    groups = groups[:_MOST_GROUPS]
    least = lanes.thin(groups, _MOST_SLICES)
    kinds = {lanes.kind_of(lane, one) for g in groups for lane in g.lanes for row in lane.rows for one in row}
    key = "".join(
        f"<span class='key'><i style='background:{lanes.COLORS[kind]}'></i>{escape(meaning)}</span>"
        for kind, meaning in lanes.MEANINGS.items()
        if kind in kinds
    )
    data = lanes.as_json(groups) | {"duration": trace.duration, "window": measures.telling_part(trace)}
    buttons = "".join(
        f"<button data-do='{do}'>{label}</button>"
        for do, label in (
            ("detail", "detail"), ("all", "whole run"), ("in", "+"), ("out", "−"), ("left", "←"),
            ("right", "→"),
        )
    )  # fmt: skip
    notes = ["Drag moves, a double click or Ctrl and the wheel zooms. An operation under the mouse is framed"
             " on its rank and on its device."]  # fmt: skip
    if least:
        notes.append(f"Neighbours below {units.format_seconds(least * 1e-9)} are drawn as one.")
    if left_out:
        notes.append(f"{left_out} more ranks and devices are left out.")
    return (
        f"<h2>Timeline</h2><div>{key}</div>"
        f"<div class='controls'>{buttons}<span id='span' class='quiet'></span></div>"
        "<canvas id='timeline' tabindex='0' role='img' aria-label='Timeline'></canvas>"
        f"<div id='tip' hidden></div><p class='quiet'>{' '.join(notes)}</p>"
        f"<script type='application/json' id='trace'>{_safe(data)}</script>"
        f"<script>{html.resource('timeline.js')}</script>"
    )


def _safe(data: dict) -> str:
    """JSON that cannot end the element that holds it."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _changes(found: Findings) -> str:
    lines = advice.changes(found)
    if not lines:
        return "<p>This trace shows nothing that would help.</p>"
    return "<ol class='changes'>" + "".join(f"<li>{html.text(line)}</li>" for line in lines) + "</ol>"


def _overlap(found: Findings) -> str:
    if not found.overlaps:
        some = any(device.slices("operations") for device in found.trace.devices)
        why = (
            "Calls of MPI were not traced, so overlap is not known."
            if some
            else "No operation went to a device."
        )
        return f"<p>{why}</p>"
    rows = [
        [
            escape(one.name),
            f"{units.format_bytes(one.bytes)}",
            str(one.count),
            units.format_seconds(one.seconds / one.count),
            html.bar(one.share, lanes.COLORS["computation"]),
            f"{100 * one.share:.0f} %",
        ]
        for one in found.overlaps
    ]
    head = ["operation", "#from size", "#count", "#time at the device, mean", "its rank computed", "#"]
    return (
        html.table(head, rows)
        + "<p class='quiet'>Of the time that an operation was at the device, the share in which its rank was"
        " not in a call of MPI. A send or receive counts from its start, so waiting for its partner counts"
        " too.</p>"
    )


def _functions(now: dict[str, measures.FunctionTime], before: dict[str, measures.FunctionTime] | None) -> str:
    if not now:
        return "<p>Calls were not traced.</p>"
    seconds = {
        name: max(t[name].seconds for t in (now, before or {}) if name in t)
        for name in {**now, **(before or {})}
    }
    names = sorted(seconds, key=lambda name: -seconds[name])
    most = seconds[names[0]]
    rows = [_function_row(name, now, before, most) for name in names[:_MOST_FUNCTIONS]]
    head = ["function", "#calls", "", "#seconds"]
    if before is not None:
        head = ["function", "#calls", "", "#before", "#after", "#change"]
    note = "Mean over the ranks, without MPI_Init and MPI_Finalize."
    if len(names) > _MOST_FUNCTIONS:
        rest = sum(now[name].seconds for name in names[_MOST_FUNCTIONS:] if name in now)
        note += f" {len(names) - _MOST_FUNCTIONS} more functions take {units.format_seconds(rest)} together."
    if before is None:
        note += (
            " Trace the same program with --offload off (lab) or OFFPATH=off, and name that directory with"
        )
        note += " --before, to see what changed."
    return html.table(head, rows) + f"<p class='quiet'>{escape(note)}</p>"


def _function_row(
    name: str,
    now: dict[str, measures.FunctionTime],
    before: dict[str, measures.FunctionTime] | None,
    most: float,
) -> list[str]:
    color = lanes.COLORS["computation" if name == measures.COMPUTATION else "call"]
    one = now.get(name)
    calls = f"{one.calls:.0f}" if one else "-"
    label = escape(name) if name == measures.COMPUTATION else f"<code>{escape(name)}</code>"
    if before is None:
        assert one is not None
        return [label, calls, html.bar(one.seconds / most, color), units.format_seconds(one.seconds)]
    old = before.get(name)
    bars = html.bar(old.seconds / most if old else 0, "#bbb") + "<br>"
    bars += html.bar(one.seconds / most if one else 0, color)
    change = units.format_seconds(abs(one.seconds - old.seconds)) if one and old else ""
    sign = "" if not change or not one or not old else "−" if one.seconds < old.seconds else "+"
    return [
        label,
        calls,
        bars,
        units.format_seconds(old.seconds) if old else "-",
        units.format_seconds(one.seconds) if one else "-",
        sign + change,
    ]


def _stayed(summary: stayed.Summary) -> str:
    if not summary.stayed:
        return "<p>Nothing that the front end counts.</p>"
    rows = [
        [
            escape(row.call) + (f" on {escape(row.communicator)}" if row.communicator else ""),
            str(row.count),
            _sizes(row.bytes),
            escape(row.reason),
            html.text(row.remedy),
        ]
        for row in summary.stayed
    ]
    return html.table(["call", "#count", "#sizes", "reason", "what changes it"], rows)


def _sizes(found: tuple[int, int] | None) -> str:
    if found is None:
        return ""
    least, most = found
    return (
        f"{units.format_bytes(most)}"
        if least == most
        else (f"{units.format_bytes(least)} to {units.format_bytes(most)}")
    )


def _wires(found: Findings) -> str:
    if not found.wires:
        return "<p>This run had no device.</p>"
    rows = []
    for wire in found.wires:
        rate = (wire.sent + wire.received) / wire.active_s if wire.active_s else 0
        rows.append(
            [
                escape(wire.device),
                f"{units.format_bytes(wire.sent)}",
                f"{units.format_bytes(wire.received)}",
                units.format_seconds(wire.active_s) if wire.active_s else "-",
                f"{rate / 1e6:.0f} MB/s" if rate else "-",
                f"{100 * wire.computed_s / wire.active_s:.0f} %"
                if wire.active_s and found.functions
                else "-",
                f"{100 * wire.asleep:.0f} %" if wire.asleep is not None else "-",
            ]
        )
    head = [
        "device",
        "#sent",
        "#received",
        "#wire in use",
        "#rate, both ways",
        "#beside computation",
        "#asleep",
    ]
    return html.table(head, rows)


def read(folder: Path) -> Run:
    from offpath.tracing import record, slices

    trace = slices.read(folder)
    return Run(trace, stayed.read(folder / record.SUMMARY, trace))
