"""The lanes of a timeline: what a page and a picture show of a trace, node by node."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from offpath.report import measures
from offpath.tracing.slices import Actor, Slice, Trace

# What is shown of a rank and of a device: the lane's name, and the kind that chooses its color.
_OF_RANK = (("waits", "waits", "call"), ("operations at the device", "at the device", "operation"))
_OF_DEVICE = (
    ("operations", "operations", "operation"), ("kernels", "kernels", "kernel"),
    ("reductions", "reductions", "reduction"), ("copying", "copies", "copy"),
    ("sending", "wire, out", "send"), ("receiving", "wire, in", "receive"),
)  # fmt: skip
COLORS = {
    "computation": "#4c78a8", "call": "#e45756", "operation": "#9ecae9", "awake": "#b9b3c9",
    "kernel": "#54a24b", "reduction": "#88d27a", "copy": "#b279a2", "send": "#f58518",
    "receive": "#eeca3b",
}  # fmt: skip
MEANINGS = {
    "computation": "a rank computes", "call": "a rank is in a call, or waits",
    "operation": "an operation is at the device", "awake": "a proxy is awake", "kernel": "a kernel runs",
    "reduction": "a device reduces", "copy": "a device copies within a node",
    "send": "bytes leave a node", "receive": "bytes arrive at a node",
}  # fmt: skip
_MOST_ROWS = 8


@dataclass
class Lane:
    kind: str
    label: str
    rows: list[list[Slice]] = field(default_factory=list)
    left_out: int = 0  # rows


@dataclass
class Group:
    """A rank or a device."""

    name: str
    node: str
    lanes: list[Lane]


def kind_of(lane: Lane, one: Slice) -> str:
    """A rank's computation shares a lane with its calls."""
    return measures.COMPUTATION if one.name == measures.COMPUTATION else lane.kind


def groups(trace: Trace) -> list[Group]:
    """Ranks first on each node, then the node's device."""
    actors = sorted(trace.actors, key=lambda a: (_place(a, trace), a.kind != "rank", a.rank))
    return [Group(a.name, a.node, _of_rank(a) if a.kind == "rank" else _of_device(a)) for a in actors]


def _place(actor: Actor, trace: Trace) -> int:
    """Puts a device, which may have a system of its own, behind the ranks that it serves."""
    if actor.kind == "rank":
        first = min(other.rank for other in trace.ranks if other.node == actor.node)
        return first
    served = {one.peer for one in actor.slices("operations")}
    of_node = [rank.rank for rank in trace.ranks if rank.name in served or rank.node == actor.node]
    return min(of_node, default=len(trace.ranks))


def _of_rank(rank: Actor) -> list[Lane]:
    lanes = []
    for (thread, name), rows in rank.lanes.items():
        if name == "calls":
            row = [one for one in rows[0] if one.depth == 0]
            if not thread:
                row = sorted(row + rank.slices(measures.COMPUTATION), key=lambda one: one.begin)
            lanes.append(Lane("call", f"calls, {thread}" if thread else "calls", [row]))
    return lanes + _found(rank, _OF_RANK)


def _of_device(device: Actor) -> list[Lane]:
    awake = [Lane("awake", f"{name}, awake", [row]) for name, row in measures.busy(device).items() if row]
    return awake + _found(device, _OF_DEVICE)


def _found(actor: Actor, wanted: Iterable[tuple[str, str, str]]) -> list[Lane]:
    rows: dict[str, list[list[Slice]]] = defaultdict(list)
    for (_, name), found in actor.lanes.items():
        rows[name] += [[one for one in row if one.depth == 0] for row in found]
    return [
        Lane(kind, label, rows[name][:_MOST_ROWS], max(0, len(rows[name]) - _MOST_ROWS))
        for name, label, kind in wanted
        if rows[name]
    ]


def thin(found: list[Group], most: int) -> int:
    """Merges neighbours that are short until at most so many slices remain. Returns the length below which
    slices were merged, in ns; 0: none were."""
    least = 0
    while sum(len(row) for group in found for lane in group.lanes for row in lane.rows) > most:
        least = max(1000, least * 4)
        for group in found:
            for lane in group.lanes:
                lane.rows = [_merged(row, least) for row in lane.rows]
    return least


def _merged(row: list[Slice], least: int) -> list[Slice]:
    merged: list[Slice] = []
    for one in row:
        last = merged[-1] if merged else None
        if last is not None and one.begin - last.end < least and one.end - last.begin < 2 * least:
            # A slice of both kinds gets the name of the longer one.
            longer = one if one.end - one.begin > last.end - last.begin else last
            merged[-1] = Slice(
                last.begin, max(last.end, one.end), longer.name, last.bytes + one.bytes,
                count=last.count + one.count, open=one.open,
            )  # fmt: skip
        else:
            merged.append(one)
    return merged


def as_json(found: list[Group]) -> dict:
    """What timeline.js draws. A row is a list of begin, length, name, bytes, count, peer and operation, one
    after the other for all slices; times are in ns, begins are relative to the previous slice's, and names,
    peers and operations are numbers."""
    names: dict[str, int] = {"": 0}
    operations: dict[int, int] = {0: 0}
    lanes = []
    for group in found:
        for lane in group.lanes:
            rows = []
            for row in lane.rows:
                flat, before = [], 0
                for one in row:
                    flat += [
                        one.begin - before, one.end - one.begin, names.setdefault(one.name, len(names)),
                        one.bytes, one.count, names.setdefault(one.peer, len(names)),
                        operations.setdefault(one.id, len(operations)),
                    ]  # fmt: skip
                    before = one.begin
                rows.append(flat)
            left_out = f" (+{lane.left_out})" if lane.left_out else ""
            lanes.append(
                {
                    "group": f"{group.name} ({group.node})",
                    "label": lane.label + left_out,
                    "kind": lane.kind,
                    "rows": rows,
                }
            )
    return {"names": list(names), "lanes": lanes, "colors": COLORS}
