"""Puts the files of several machines on one clock, that of rank 0.

Ranks on other clocks have measured the difference at the begin and at the end of the run. Between these
moments the difference is taken to change evenly. Clocks without measurements are aligned by real time, as it
was when the first process with this clock began."""

from dataclasses import dataclass, field, replace

import numpy as np

from offpath.tracing.files import TraceFile

KIND = "clock"


@dataclass
class Clock:
    """The monotonic clock of one machine."""

    name: str
    ahead: int  # of the monotonic clock, real time: ns
    points: list[tuple[int, int, int]] = field(default_factory=list)  # moment, what to add to it, its error

    def offsets(self, times: np.ndarray, base: "Clock") -> np.ndarray:
        """What to add to these times, in ns, to get those of `base`."""
        if self.name == base.name:
            return np.zeros(len(times), np.int64)
        if not self.points:
            return np.full(len(times), self.ahead - base.ahead, np.int64)
        moments, offsets, _ = zip(*sorted(self.points), strict=True)
        # Small numbers, which floating point keeps exactly.
        change = np.interp(
            times.astype(np.int64) - moments[0],
            [moment - moments[0] for moment in moments],
            [offset - offsets[0] for offset in offsets],
        )
        return offsets[0] + np.rint(change).astype(np.int64)

    @property
    def error_ns(self) -> int:
        return max((error for _, _, error in self.points), default=0)


@dataclass(frozen=True)
class Aligned:
    files: list[TraceFile]  # with times of one clock
    machines: int
    measured: bool  # whether all clocks but the first were measured
    error_ns: int  # of the measured ones, the largest


def align(found: list[TraceFile]) -> Aligned:
    clocks: dict[str, Clock] = {}
    for file in found:
        clock = clocks.setdefault(file.boot, Clock(file.boot, file.clock[1] - file.clock[0]))
        clock.points += _points(file)
    first = min(found, key=lambda file: (file.rank < 0, file.rank))
    base = clocks[first.boot]
    files = [_on(base, clocks[file.boot], file) for file in found]
    others = [clock for clock in clocks.values() if clock is not base]
    return Aligned(
        files,
        len(clocks),
        all(clock.points for clock in others),
        max((clock.error_ns for clock in others), default=0),
    )


def _points(file: TraceFile) -> list[tuple[int, int, int]]:
    number = file.kinds.get(KIND, -1)
    return [
        (int(record["time"]), int(np.uint64(record["id"]).astype(np.int64)), int(record["bytes"]))
        for chunk in file.chunks
        for record in chunk.records[chunk.records["kind"] >> 2 == number]
    ]


def _on(base: Clock, clock: Clock, file: TraceFile) -> TraceFile:
    if clock is base:
        return file
    chunks = []
    for chunk in file.chunks:
        records = chunk.records.copy()
        records["time"] = records["time"].astype(np.int64) + clock.offsets(records["time"], base)
        chunks.append(replace(chunk, records=records))
    return replace(file, chunks=chunks)
