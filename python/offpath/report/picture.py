"""A picture of a part of a trace, with the same part of an earlier run above it: what ranks, devices and
wires did, on one scale."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from offpath import plots
from offpath.report import lanes, measures
from offpath.tracing.slices import Slice, Trace

_RANKS = 2
_KINDS = ("computation", "call", "operation", "copy", "kernel", "send", "receive")
_SKIPPED = ("awake", "reduction")


def draw(trace: Trace, before: Trace | None, path: Path) -> None:
    part = measures.telling_part(trace)
    earlier = measures.same_part(trace, part, before) if before is not None else None
    panels = [(trace, part)]
    if before is not None and earlier is not None:
        panels.insert(0, (before, earlier))
    rows = [_rows(shown, span) for shown, span in panels]
    longest = max(end - begin for _, (begin, end) in panels)
    figure, axes = plots.plt.subplots(
        len(panels), 1, figsize=(12, 1.3 + sum(0.36 * len(each) + 0.55 for each in rows)), squeeze=False,
        layout="constrained", gridspec_kw={"height_ratios": [len(each) + 1 for each in rows]},
    )  # fmt: skip
    kinds: set[str] = set()
    for axis, (shown, span), found in zip(axes[:, 0], panels, rows, strict=True):
        kinds |= _panel(axis, found, span[0], longest)
        how = "with offpath" if shown.devices else "on the host's MPI, which moves data inside its calls"
        length_ms = (span[1] - span[0]) * 1e-6
        shown_length = f"{length_ms:.0f}" if length_ms >= 100 else f"{length_ms:.3g}"
        axis.set_title(f"{how}: {shown_length} ms", loc="left", fontsize=11)
    axes[-1, 0].set_xlabel("milliseconds")
    figure.legend(
        handles=[Patch(color=lanes.COLORS[k], label=lanes.MEANINGS[k]) for k in _KINDS if k in kinds],
        loc="outside lower center", ncols=4, fontsize=9, frameon=False,
    )  # fmt: skip
    figure.suptitle(_title(trace, len(panels) > 1), fontsize=12)
    figure.savefig(path, dpi=130)
    plots.plt.close(figure)


def _title(trace: Trace, both: bool) -> str:
    shown = min(_RANKS, len(trace.ranks))
    text = f"{trace.program}, {shown} of {len(trace.ranks)} ranks"
    if both:
        text += ", the same calls both ways"
    wires = measures.wires(trace)
    if active := sum(wire.active_s for wire in wires):
        share = sum(wire.computed_s for wire in wires) / active
        text += f"; in the whole run, {100 * share:.0f} % of the transfers' time lies beside computation"
    return text


def _rows(trace: Trace, span: tuple[int, int]) -> list[tuple[str, lanes.Lane]]:
    """The lanes of the first ranks and of their devices with what lies within the span, and their labels."""
    ranks = {rank.name for rank in trace.ranks[:_RANKS]}
    devices = {d.name for d in trace.devices if ranks & {one.peer for one in d.slices("operations")}}
    found = []
    for group in lanes.groups(trace):
        if group.name not in ranks | devices:
            continue
        for lane in group.lanes:
            if lane.kind in _SKIPPED or (lane.kind == "operation" and group.name in devices):
                continue
            rows = [_clipped(row, span) for row in lane.rows]
            label = group.name if lane.label == "calls" else lane.label
            found.append((label, lanes.Lane(lane.kind, lane.label, [row for row in rows if row])))
    return found


def _clipped(row: list[Slice], span: tuple[int, int]) -> list[Slice]:
    begin, end = span
    return [
        Slice(max(one.begin, begin), min(one.end, end), one.name)
        for one in row
        if one.begin < end and one.end > begin
    ]


def _panel(axis: Axes, found: list[tuple[str, lanes.Lane]], begin: int, length: int) -> set[str]:
    """Draws a panel and returns the kinds that it shows. Rows of one lane share its height."""
    kinds = set()
    for number, (_, lane) in enumerate(found):
        height = 0.8 if lane.kind == "call" else 0.62
        each = height / max(1, len(lane.rows))
        for i, row in enumerate(lane.rows):
            spans: dict[str, list[tuple[float, float]]] = {}
            for one in row:
                spans.setdefault(lanes.kind_of(lane, one), []).append(
                    ((one.begin - begin) * 1e-6, (one.end - one.begin) * 1e-6)
                )
            for kind, bars in spans.items():
                at = (number - height / 2 + i * each, each * (0.85 if len(lane.rows) > 1 else 1))
                axis.broken_barh(bars, at, color=lanes.COLORS[kind], linewidth=0)
                kinds.add(kind)
        if lane.label == "calls" and number:
            axis.axhline(number - 0.52, color="#cccccc", linewidth=0.6)
    axis.set_yticks(range(len(found)), [label for label, _ in found], fontsize=9)
    axis.set_ylim(len(found) - 0.4, -0.6)
    axis.set_xlim(0, length * 1e-6)
    axis.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)
    return kinds
