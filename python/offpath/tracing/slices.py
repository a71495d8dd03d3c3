"""What a trace says: the slices of each lane of each rank and device, on one clock.

A lane is a row of slices. Slices of the lane `calls` may lie within each other; those of other lanes do not
overlap. What overlaps gets several lanes of one name.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from offpath.tracing import clocks, files
from offpath.tracing.files import BEGIN, END, TraceFile

# Kinds whose slices lie within each other on one thread, and their lane.
NESTED = {"call": "calls", "wait": "waits", "reduce": "reductions", "sleep": "asleep"}
# Kinds whose slices have a number, and their lane.
NUMBERED = {
    "handed_over": "operations at the device", "operation": "operations", "send": "sending",
    "receive": "receiving", "copy": "copying", "kernel": "kernels",
}  # fmt: skip
NOBODY = 0xFFFFFFFF


@dataclass(slots=True)
class Slice:
    begin: int  # ns since the trace's begin
    end: int
    name: str
    bytes: int = 0
    peer: str = ""
    count: int = 1  # polls that became one slice
    id: int = 0  # the same for a rank's and its device's slice of one operation
    depth: int = 0  # of a call within calls
    open: bool = False  # it had not ended when the trace ended


@dataclass
class Actor:
    """A rank or a device."""

    kind: str  # rank, device
    name: str
    node: str
    rank: int = -1
    lanes: dict[tuple[str, str], list[list[Slice]]] = field(default_factory=dict)  # by thread and name
    dropped: int = 0

    def slices(self, lane: str) -> list[Slice]:
        """The slices of all lanes of this name."""
        return [one for (_, name), rows in self.lanes.items() if name == lane for row in rows for one in row]


@dataclass(frozen=True)
class Stayed:
    """Collectives of one kind that stayed on the host's MPI."""

    call: str
    reason: str
    count: int
    bytes: int  # what decided, of the largest


@dataclass
class Trace:
    folder: Path
    actors: list[Actor]
    duration: int  # ns
    began: int  # ns, on the clock of rank 0
    events: int
    stayed: list[Stayed]
    counted: dict[str, int]  # calls that stayed, by reason
    machines: int
    clock_error_ns: int | None  # of their clocks; None: not measured, aligned by real time
    program: str = ""

    @property
    def dropped(self) -> int:
        return sum(actor.dropped for actor in self.actors)

    @property
    def ranks(self) -> list[Actor]:
        return [actor for actor in self.actors if actor.kind == "rank"]

    @property
    def devices(self) -> list[Actor]:
        return [actor for actor in self.actors if actor.kind == "device"]


def read(folder: Path) -> Trace:
    return build(folder, files.read_all(folder))


def build(folder: Path, found: list[TraceFile]) -> Trace:
    aligned = clocks.align(found)
    found = aligned.files
    times = [
        int(extreme(chunk.records["time"]))
        for file in found for chunk in file.chunks if len(chunk.records) for extreme in (np.min, np.max)
    ]  # fmt: skip
    first, last = min(times, default=0), max(times, default=0)
    proxies = _proxies(found)
    actors: dict[tuple, Actor] = {}
    for file in found:
        key = ("rank", file.rank) if file.rank >= 0 else ("device", file.node, file.process)
        if key not in actors:
            kind = key[0]
            name = f"rank {file.rank}" if kind == "rank" else f"device of {file.node}"
            actors[key] = Actor(kind, name, file.node, file.rank)
        actor = actors[key]
        actor.dropped += file.dropped
        _add(actor, file, first, last - first, proxies)
    everyone = sorted(actors.values(), key=lambda a: (a.kind != "rank", a.rank, a.node))
    trace = Trace(
        folder, everyone, last - first, first, sum(len(c.records) for f in found for c in f.chunks),
        _stayed(found), _counted(found), aligned.machines,
        aligned.error_ns if aligned.measured else None,
        next((f.program for f in found if f.rank >= 0), "program"),
    )  # fmt: skip
    _name_operations(trace)
    for actor in trace.ranks:
        _add_computation(actor, trace.duration)
    return trace


def _instants(file: TraceFile, kind: str) -> Iterator[np.void]:
    """The records of a kind that has no begins and ends."""
    number = file.kinds.get(kind, -1)
    for chunk in file.chunks:
        yield from chunk.records[chunk.records["kind"] >> 2 == number]


def _proxies(found: list[TraceFile]) -> dict[int, str]:
    """The node of each proxy, by the low half of its number."""
    nodes = {}
    for file in found:
        for record in _instants(file, "proxy"):
            nodes[int(record["id"]) & 0xFFFFFFFF] = file.node
    return nodes


def _add(actor: Actor, file: TraceFile, first: int, duration: int, proxies: dict[int, str]) -> None:
    threads: dict[int, list[np.ndarray]] = defaultdict(list)
    for chunk in file.chunks:
        threads[chunk.thread].append(chunk.records)
    labels = _thread_labels(file)
    numbers = {number: name for name, number in file.kinds.items()}
    for thread, parts in threads.items():
        rows = _nested(file, numbers, np.concatenate(parts), first, duration)
        for kind, row in rows.items():
            if row:
                actor.lanes.setdefault((labels[thread], NESTED[kind]), []).append(row)
    if not file.chunks:
        return
    # One thread may begin what another one ends.
    records = np.concatenate([chunk.records for chunk in file.chunks])
    records = records[np.argsort(records["time"], kind="stable")]
    for kind, found in _numbered(file, numbers, records, first, duration, proxies).items():
        if found:
            actor.lanes.setdefault(("", NUMBERED[kind]), []).extend(_without_overlap(found))


def _thread_labels(file: TraceFile) -> dict[int, str]:
    """What tells the threads apart. The main thread has no label, whatever its name."""
    labels: dict[int, str] = {}
    used: dict[str, int] = defaultdict(int)
    for chunk in file.chunks:
        if chunk.thread in labels:
            continue
        name = "" if chunk.thread == file.process else chunk.thread_name or "thread"
        used[name] += 1
        labels[chunk.thread] = f"{name} {used[name]}" if used[name] > 1 else name
    return labels


def _nested(
    file: TraceFile, numbers: dict[int, str], records: np.ndarray, first: int, duration: int
) -> dict[str, list[Slice]]:
    """The slices of one thread that lie within each other, by kind and in the order of their begins."""
    open_: dict[str, list[Slice]] = {name: [] for name in NESTED}
    rows: dict[str, list[Slice]] = {name: [] for name in NESTED}
    for time, id_, bytes_, other, what, kind_phase in records.tolist():
        kind, phase, at = numbers.get(kind_phase >> 2, ""), kind_phase & 3, time - first
        if kind not in NESTED:
            continue
        if phase == BEGIN:
            name = file.name(what) if kind == "call" else kind
            one = Slice(at, duration, name, bytes_, depth=len(open_[kind]), open=True)
            open_[kind].append(one)
            rows[kind].append(one)
        elif phase == END and open_[kind]:
            one = open_[kind].pop()
            one.end, one.open, one.bytes, one.count = at, False, one.bytes or bytes_, max(1, id_)
            if kind == "call" and other != NOBODY:
                one.peer = f"rank {other}"
    return rows


def _numbered(
    file: TraceFile, numbers: dict[int, str], records: np.ndarray, first: int, duration: int,
    proxies: dict[int, str],
) -> dict[str, list[Slice]]:  # fmt: skip
    """The slices with numbers, by kind. `records` are in the order of time."""
    open_: dict[tuple[str, int], Slice] = {}
    found: dict[str, list[Slice]] = {name: [] for name in NUMBERED}
    for time, id_, bytes_, other, what, kind_phase in records.tolist():
        kind, phase, at = numbers.get(kind_phase >> 2, ""), kind_phase & 3, time - first
        if kind not in NUMBERED:
            continue
        if phase == BEGIN:
            name = file.name(what) if kind in ("handed_over", "operation", "kernel") else kind
            one = Slice(at, duration, name, bytes_, id=id_, open=True)
            if kind in ("send", "receive"):
                one.peer = proxies.get(other, "")
            elif kind == "operation":
                one.peer = f"rank {other}"
            open_[kind, id_] = one
            found[kind].append(one)
        elif phase == END and (kind, id_) in open_:
            one = open_.pop((kind, id_))
            one.end, one.open = at, False
    return found


def _without_overlap(slices: list[Slice]) -> list[list[Slice]]:
    """Puts slices into as few rows as need be."""
    rows: list[list[Slice]] = []
    free: list[tuple[int, int]] = []  # when each row ends, and its number
    for one in sorted(slices, key=lambda each: each.begin):
        if free and free[0][0] <= one.begin:
            _, number = heapq.heappop(free)
        else:
            number = len(rows)
            rows.append([])
        rows[number].append(one)
        heapq.heappush(free, (one.end, number))
    return rows


def _name_operations(trace: Trace) -> None:
    """A device does not know what a schedule is for; the rank that started it does."""
    of_ranks = {
        one.id: one for actor in trace.ranks for one in actor.slices("operations at the device") if one.id
    }
    for actor in trace.devices:
        for one in actor.slices("operations"):
            if (host := of_ranks.get(one.id)) is not None:
                one.name, one.bytes = host.name, host.bytes


def _add_computation(actor: Actor, duration: int) -> None:
    """What the main thread does between its calls of MPI, after the first one."""
    calls = next(
        (rows[0] for (thread, name), rows in actor.lanes.items() if name == "calls" and not thread), []
    )
    top = [one for one in calls if one.depth == 0]
    between = [
        Slice(a.end, b.begin, "computation") for a, b in zip(top, top[1:], strict=False) if b.begin > a.end
    ]
    if top and top[-1].name not in ("MPI_Finalize", "MPI_Abort") and not top[-1].open:
        between.append(Slice(top[-1].end, duration, "computation", open=True))
    if between:
        actor.lanes = {("", "computation"): [between]} | actor.lanes


def _stayed(found: list[TraceFile]) -> list[Stayed]:
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for file in found:
        for record in _instants(file, "decision"):
            entry = counts[file.name(int(record["what"])), file.name(int(record["id"]))]
            entry[0] += 1
            entry[1] = max(entry[1], int(record["bytes"]))
    return [Stayed(call, reason, n, most) for (call, reason), (n, most) in sorted(counts.items())]


def _counted(found: list[TraceFile]) -> dict[str, int]:
    counts: dict[str, int] = defaultdict(int)
    for file in found:
        for record in _instants(file, "stayed"):
            counts[file.name(int(record["what"]))] += int(record["bytes"])
    return dict(counts)


def in_order(row: list[Slice]) -> Iterator[tuple[bool, int]]:
    """The begins and ends of a lane's slices in the order of time: whether it is a begin, and which slice's.
    A slice ends before the next one begins, or after it has ended."""
    stack: list[int] = []
    for i, one in enumerate(row):
        while stack and row[stack[-1]].end <= one.begin:
            yield False, stack.pop()
        yield True, i
        stack.append(i)
    while stack:
        yield False, stack.pop()
