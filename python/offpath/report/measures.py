"""What a trace says in numbers: time by function, overlap by size, and how the wires were used."""

from collections import defaultdict
from dataclasses import dataclass

from offpath.report.spans import Within, union
from offpath.tracing.slices import Actor, Slice, Trace

COMPUTATION = "computation"
_ENDS = ("MPI_Init", "MPI_Init_thread", "MPI_Finalize")


@dataclass(frozen=True)
class FunctionTime:
    """A function's calls and seconds, per rank on average. Calls within calls belong to the outer one."""

    name: str
    calls: float
    seconds: float


@dataclass(frozen=True)
class Overlap:
    """The operations of one name whose sizes have the same power of two."""

    name: str
    bytes: int  # the power of two
    count: int
    seconds: float  # at the device, all together
    computed: float  # of it, while the operation's rank computed

    @property
    def share(self) -> float:
        return self.computed / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class Wire:
    """What a device sent to other devices and received from them."""

    device: str
    sent: int
    received: int
    active_s: float  # while bytes left or arrived
    computed_s: float  # of it, while at least one of its ranks computed
    asleep: float | None  # share of the main part; None: no proxy slept


def main_part(trace: Trace) -> tuple[int, int]:
    """From the end of the last MPI_Init to the begin of the first MPI_Finalize."""
    calls = [actor.slices("calls") for actor in trace.ranks]
    begins = [row[0].end for row in calls if row and row[0].name in _ENDS]
    ends = [row[-1].begin for row in calls if row and row[-1].name == "MPI_Finalize"]
    begin, end = max(begins, default=0), min(ends, default=trace.duration)
    return (begin, end) if begin < end else (0, trace.duration)


def by_function(trace: Trace) -> dict[str, FunctionTime]:
    """The longest first. Without MPI_Init and MPI_Finalize, which depend on the launcher."""
    calls: dict[str, int] = defaultdict(int)
    seconds: dict[str, float] = defaultdict(float)
    for actor in trace.ranks:
        for one in actor.slices("calls") + actor.slices(COMPUTATION):
            if one.depth == 0 and one.name not in _ENDS:
                calls[one.name] += one.count
                seconds[one.name] += (one.end - one.begin) * 1e-9
    ranks = max(1, len(trace.ranks))
    return {
        name: FunctionTime(name, calls[name] / ranks, seconds[name] / ranks)
        for name in sorted(seconds, key=lambda each: -seconds[each])
    }


def inside_and_outside(functions: dict[str, FunctionTime]) -> tuple[float, float]:
    """Seconds of a rank in calls of MPI, and between them."""
    outside = functions[COMPUTATION].seconds if COMPUTATION in functions else 0.0
    return sum(one.seconds for one in functions.values()) - outside, outside


def overlap_by_size(trace: Trace) -> list[Overlap]:
    """How much of the time of operations at devices their ranks computed. Empty without calls of MPI."""
    computing = {
        actor.name: Within(computed) for actor in trace.ranks if (computed := actor.slices(COMPUTATION))
    }
    found: dict[tuple[str, int], list[float]] = defaultdict(lambda: [0, 0, 0])
    for device in trace.devices:
        for one in device.slices("operations"):
            if one.open or one.peer not in computing:
                continue
            entry = found[one.name, 1 << max(0, one.bytes.bit_length() - 1) if one.bytes else 0]
            entry[0] += 1
            entry[1] += (one.end - one.begin) * 1e-9
            entry[2] += computing[one.peer].covered(one.begin, one.end) * 1e-9
    return [
        Overlap(name, size, int(n), all_, both) for (name, size), (n, all_, both) in sorted(found.items())
    ]


def wires(trace: Trace) -> list[Wire]:
    begin, end = main_part(trace)
    ranks = {actor.name: actor for actor in trace.ranks}
    found = []
    for device in trace.devices:
        out, in_ = device.slices("sending"), device.slices("receiving")
        served = {one.peer for one in device.slices("operations")}
        computing = Within(
            union(one for name in served if name in ranks for one in ranks[name].slices(COMPUTATION))
        )
        active = union(out + in_)
        asleep = device.slices("asleep")
        slept = Within(union(asleep)).covered(begin, end) / (end - begin) if asleep else None
        found.append(
            Wire(
                device.name,
                sum(one.bytes for one in out),
                sum(one.bytes for one in in_),
                sum(one.end - one.begin for one in active) * 1e-9,
                sum(computing.covered(one.begin, one.end) for one in active) * 1e-9,
                slept,
            )
        )
    return found


def busy(device: Actor) -> dict[str, list[Slice]]:
    """When each proxy of a device was awake, by the name of its thread."""
    found = {}
    for (thread, lane), rows in device.lanes.items():
        if lane != "asleep":
            continue
        row = rows[0]
        found[thread] = [
            Slice(a.end, b.begin, "awake") for a, b in zip(row, row[1:], strict=False) if b.begin > a.end
        ]
    return found


def telling_part(trace: Trace, operations: int = 12) -> tuple[int, int]:
    """A part with about so many operations of one rank in which transfers and computation overlap most. The
    main part, if there are no transfers."""
    whole = main_part(trace)
    best, most = whole, 0.0
    for actor in trace.ranks[:1]:
        mine = sorted(actor.slices("operations at the device"), key=lambda one: one.begin)
        moved = union(
            one
            for device in trace.devices
            if any(each.peer == actor.name for each in device.slices("operations"))
            for one in device.slices("sending") + device.slices("receiving") + device.slices("copying")
        )
        moving, computing = Within(moved), union(actor.slices(COMPUTATION))
        both = Within(
            [
                Slice(max(a.begin, begin), min(a.end, end), "")
                for a in computing
                for begin, end in moving.parts(a.begin, a.end)
            ]
        )
        for first, last in zip(mine, mine[operations - 1 :], strict=False):
            begin, end = first.begin, last.end
            if end > begin and (share := both.covered(begin, end) / (end - begin)) > most:
                best, most = (begin, end), share
    if best == whole:
        return whole
    margin = (best[1] - best[0]) // 20
    return max(0, best[0] - margin), min(trace.duration, best[1] + margin)


def same_part(trace: Trace, part: tuple[int, int], other: Trace) -> tuple[int, int] | None:
    """The part of another trace of the same program in which its first rank makes the same calls. None if it
    does not make them."""
    if not trace.ranks or not other.ranks:
        return None
    ours, theirs = _numbered_calls(trace.ranks[0]), _numbered_calls(other.ranks[0])
    within = [key for key, one in ours.items() if part[0] <= one.begin and one.end <= part[1]]
    shared = [key for key in within if key in theirs]
    if len(shared) < 2:
        return None
    first, last = shared[0], shared[-1]
    begin = theirs[first].begin - (ours[first].begin - part[0])
    end = theirs[last].end + (part[1] - ours[last].end)
    return (max(0, begin), min(other.duration, end)) if begin < end else None


def _numbered_calls(rank: Actor) -> dict[tuple[str, int], Slice]:
    """The calls that are not polls, by name and number."""
    found: dict[tuple[str, int], Slice] = {}
    numbers: dict[str, int] = defaultdict(int)
    for one in rank.slices("calls"):
        if one.depth == 0 and "Test" not in one.name and "probe" not in one.name:
            found[one.name, numbers[one.name]] = one
            numbers[one.name] += 1
    return found
