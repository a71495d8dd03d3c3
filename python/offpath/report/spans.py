"""Spans of time: what slices cover together, and how much of a span they cover."""

from collections.abc import Iterable, Iterator

import numpy as np

from offpath.tracing.slices import Slice


def union(slices: Iterable[Slice]) -> list[Slice]:
    """The time that at least one of the slices covers, as slices that do not overlap."""
    merged: list[Slice] = []
    for one in sorted(slices, key=lambda each: each.begin):
        if merged and one.begin <= merged[-1].end:
            merged[-1].end = max(merged[-1].end, one.end)
        else:
            merged.append(Slice(one.begin, one.end, one.name))
    return merged


class Within:
    """How much of a span is covered by slices that do not overlap."""

    def __init__(self, slices: list[Slice]):
        self.begins = np.array([one.begin for one in slices], dtype=np.int64)
        self.ends = np.array([one.end for one in slices], dtype=np.int64)
        self.before = np.concatenate([[0], np.cumsum(self.ends - self.begins)])

    def covered(self, begin: int, end: int) -> int:
        return self._until(end) - self._until(begin)

    def parts(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Begin and end of each slice that has time within the span."""
        first = int(np.searchsorted(self.ends, begin, "right"))
        last = int(np.searchsorted(self.begins, end, "left"))
        for i in range(first, last):
            yield int(self.begins[i]), int(self.ends[i])

    def _until(self, at: int) -> int:
        n = int(np.searchsorted(self.begins, at, "right"))
        if n == 0:
            return 0
        return int(self.before[n - 1] + min(int(self.ends[n - 1]), at) - int(self.begins[n - 1]))
