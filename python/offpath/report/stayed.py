"""What stayed on the host's MPI, and why."""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from offpath import collectives, units
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.tracing.slices import Trace

# What a program or its user can do about a reason (frontends/mpi/runtime/selection.cpp).
_REMEDIES = {
    "below the switch-over": (
        "The host's MPI is expected to be faster for these sizes. OFFPATH_MIN_BYTES={size} moves the"
        " switch-over, and `offpath tune` measures where it belongs on this machine."
    ),
    "switched off by OFFPATH_OPS": "Add {op} to OFFPATH_OPS.",
    "switched off while the program ran": "`offpath control on` switches it on.",
    "on a communicator from MPI_Comm_idup": "Make the communicator with MPI_Comm_dup.",
    "on a communicator of one rank": "There is nothing to move.",
    "where the host was measured to be faster, or was tried": (
        "The library measured both ways while the program ran. OFFPATH_REFINE=off keeps it from doing so."
    ),
    "blocking": (
        "The rank would only wait for the device. Use the non-blocking call and compute before the wait, or"
        " OFFPATH_OPS={ops}."
    ),
    "with a user-defined reduction": (
        "The device knows MPI's own reductions only. Use one of these where the result allows it."
    ),
    "windows": (
        "Windows go to the device if their ranks compute between operations and the flush, or with"
        " OFFPATH_RMA=all."
    ),
    "large messages without concurrent computation": (
        "Both ends only wait for these messages. Compute between the start and the wait."
    ),
}


@dataclass(frozen=True)
class Stayed:
    """Calls of one kind that stayed. `bytes` are the sizes that decided, None where they are not known."""

    call: str
    communicator: str
    reason: str
    count: int
    bytes: tuple[int, int] | None

    @property
    def remedy(self) -> str:
        """Settings are named with the values that change this row."""
        text = _REMEDIES.get("windows" if self.call == "windows" else self.reason, "")
        op = self.call.removeprefix("MPI_").lower()
        most = self.bytes[1] if self.bytes else 0
        size = units.format_size(1 << most.bit_length() - 1) if most > 0 else "SIZE"
        return text.format(op=op, ops=f"default,{op}", size=size)


@dataclass(frozen=True)
class Calls:
    """Collectives of one communicator and call, of which at least one went to the device."""

    call: str
    communicator: str
    offloaded: int
    bytes_from_others: int


@dataclass(frozen=True)
class Summary:
    """What the summary file of a run says, or what its trace tells of it."""

    stayed: list[Stayed]
    offloaded: list[Calls]
    back_end: str = ""
    hints: list[str] = field(default_factory=list)  # settings, as at the end of the run


def read(file: Path, trace: Trace) -> Summary:
    """`file` is what OFFPATH_SUMMARY named; it may be missing or empty, if the run was killed."""
    messages = "large messages without concurrent computation"
    others = _blocking(trace)
    if messages in trace.counted:
        others.append(Stayed("messages", "", messages, trace.counted[messages], None))
    try:
        text = file.read_text()
    except FileNotFoundError:
        text = ""
    if not text:
        return Summary(_from_trace(trace) + others, [])
    try:
        found = json.loads(text)
        stayed, offloaded = _rows(found.get("calls", []))
        return Summary(
            stayed + others + _windows(found.get("windows", {})),
            offloaded,
            found.get("back_end", ""),
            found.get("hints", []),
        )
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        raise OffpathError(Code.INPUT_FILE, f"{file} is not a summary of OFFPATH_SUMMARY: {error}") from error


def _rows(calls: list[dict]) -> tuple[list[Stayed], list[Calls]]:
    """Communicators of one name and call become one row."""
    stayed: dict[tuple[str, str, str], list[int]] = {}
    offloaded: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for row in calls:
        who = row["call"], row["communicator"]
        for reason, count in row["on_host"].items():
            entry = stayed.setdefault((*who, reason), [0, row["least_bytes"], 0])
            entry[0] += count
            entry[1] = min(entry[1], row["least_bytes"])
            entry[2] = max(entry[2], row["most_bytes"])
        if row["offloaded"]:
            offloaded[who][0] += row["offloaded"]
            offloaded[who][1] += row["bytes_from_others"]
    return (
        [
            Stayed(*who, count, (least, most))
            for who, (count, least, most) in sorted(stayed.items(), key=lambda item: -item[1][0])
        ],
        [Calls(*who, count, size) for who, (count, size) in offloaded.items()],
    )


def _windows(found: dict) -> list[Stayed]:
    """The reason names the number of windows."""
    return (
        [Stayed("windows", "", found.get("why_on_host", ""), found["on_host"], None)]
        if found.get("on_host")
        else []
    )


def _blocking(trace: Trace) -> list[Stayed]:
    """Blocking collectives that no device served. They are not counted, since by default all of them stay."""
    names = {f"MPI_{row.name.capitalize()}" for row in collectives.read()}
    found: dict[str, list[int]] = {}
    for rank in trace.ranks:
        served = rank.slices("operations at the device")
        within = iter(sorted(served, key=lambda one: one.begin))
        operation = next(within, None)
        for one in rank.slices("calls"):
            if one.depth > 0 or one.name not in names:
                continue
            while operation is not None and operation.begin < one.begin:
                operation = next(within, None)
            if operation is None or operation.begin >= one.end:
                entry = found.setdefault(one.name, [0, one.bytes, one.bytes])
                entry[0] += 1
                entry[1], entry[2] = min(entry[1], one.bytes), max(entry[2], one.bytes)
    ranks = max(1, len(trace.ranks))
    return [
        Stayed(name, "", "blocking", max(1, count // ranks), (least, most))
        for name, (count, least, most) in found.items()
    ]


def _from_trace(trace: Trace) -> list[Stayed]:
    """Every rank notes its decisions; those below the switch-over are only counted, and by rank 0."""
    ranks = max(1, len(trace.ranks))
    rows = [Stayed(s.call, "", s.reason, max(1, s.count // ranks), (0, s.bytes)) for s in trace.stayed]
    below = trace.counted.get("below the switch-over", 0)
    named = sum(row.count for row in rows if row.reason == "below the switch-over")
    if below > named:
        rows.append(Stayed("collectives", "", "below the switch-over", below - named, None))
    return rows
