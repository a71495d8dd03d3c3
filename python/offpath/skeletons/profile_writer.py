"""Writes profiles that no run has recorded: the calls of a rank, and the computation between them, as a
program with known communication would make them. offpath-sim replays them like recorded ones (docs/advise.md
has the format)."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offpath import outputs

NO_RANK = -2  # MPI_PROC_NULL
_COMPLETIONS = ("Wait", "Waitall", "Waitany", "Waitsome")


@dataclass(frozen=True)
class Request:
    """A post of one rank: its number among all posts, the call, and the computation of the rank before it."""

    number: int
    call: int
    computed_s: float


class RankWriter:
    """One rank's calls, in order. Times are in seconds.

    Inside `repeat(n)` each call is written once and counts n times, so a repeated part must complete the
    requests that it posts. Not safe for threads.
    """

    def __init__(self, rank: int, ranks: int) -> None:
        self.rank, self.ranks = rank, ranks
        self._communicators: list[dict] = []
        self._occurrences: dict[tuple[int, ...], int] = {}
        self._windows: list[dict] = []
        self._calls: list[dict] = []
        self._numbers: dict[str, int] = {}
        self._bodies: list[list] = [[]]
        self._times = 1
        self._computed = 0.0  # since the last call
        self._all_computed = 0.0  # one pass through each repeated part
        self._total_s = 0.0
        self._posts = 0
        self.communicator(range(ranks))
        self.communicator([rank])

    def communicator(self, members: Sequence[int]) -> int:
        """The number of a communicator with these members, one of which is this rank. 0 is that of all."""
        key = tuple(members)
        occurrence = self._occurrences.get(key, 0)
        self._occurrences[key] = occurrence + 1
        self._communicators.append(
            {"members": list(key), "rank": key.index(self.rank), "occurrence": occurrence}
        )
        return len(self._communicators) - 1

    def window(self, size: int, comm: int = 0) -> int:
        """The number of a window in which this rank exposes `size` bytes of MPI's memory, after a set-up in
        which ranks computed."""
        self._windows.append({"comm": comm, "bytes": size, "allocated": 1, "busy": 1})
        return len(self._windows) - 1

    def compute(self, seconds: float) -> None:
        self._computed += seconds
        self._all_computed += seconds
        self._total_s += seconds * self._times

    def computes_s(self) -> float:
        return self._total_s

    def allocates(self) -> None:
        """What the rank puts from and gets into is memory of MPI_Alloc_mem. The call itself is left out."""
        self._number({"call": "Alloc_mem"})

    def call(self, name: str, tests: int = 0, **fields: Any) -> None:
        """A call that leaves no request, such as `call("Send", comm=0, peer=1, tag=7, bytes=8)`. `tests` is
        how often the program has tested its requests in vain since its last call."""
        self._enter(self._number({"call": name, **fields}), tests)

    def post(self, name: str, tests: int = 0, **fields: Any) -> Request:
        """A call that leaves a request."""
        number = self._number({"call": name, **fields})
        self._enter(number, tests)
        self._posts += 1
        return Request(self._posts, number, self._all_computed)

    def complete(self, requests: Sequence[Request], name: str = "", tests: int = 0) -> None:
        """Waits for requests: by MPI_Wait for one of them, otherwise by MPI_Waitall."""
        name = name or ("Wait" if len(requests) == 1 else "Waitall")
        assert name in _COMPLETIONS
        for request in requests:
            windows = self._calls[request.call].setdefault("windows", {"count": 0, "compute_s": 0.0})
            windows["count"] += self._times
            windows["compute_s"] += self._times * (self._all_computed - request.computed_s)
        fields = {"list": [self._posts + 1 - request.number for request in requests]} if requests else {}
        self._enter(self._number({"call": name, **fields}), tests)

    @contextlib.contextmanager
    def repeat(self, times: int) -> Iterator[None]:
        """What is written inside happens `times` times."""
        self._settle()
        self._bodies.append([])
        self._times *= times
        yield
        self._settle()
        self._times //= times
        body = self._bodies.pop()
        if body and times:
            self._bodies[-1].append({"times": times, "body": body})

    def _settle(self) -> None:
        """Computation stands before a call. Where there is none, a wait for nothing takes it."""
        if self._computed > 0:
            self.complete([], "Wait")

    def profile(self, program: str) -> dict:
        return {
            "format": "offpath-profile", "version": 1, "rank": self.rank, "ranks": self.ranks,
            "program": program, "node": "", "begin_s": 0.0, "end_s": 0.0, "offset_s": [0.0, 0.0],
            "preempted_s": 0.0, "compute_at_end_s": self._computed, "lost": 0,
            "communicators": self._communicators, "windows": self._windows, "sites": [],
            "calls": self._calls, "sequence": self._bodies[0], "arrivals": [],
        }  # fmt: skip

    def _number(self, call: dict) -> int:
        key = json.dumps(call)
        if key not in self._numbers:
            self._numbers[key] = len(self._calls)
            self._calls.append(call)
        return self._numbers[key]

    def _enter(self, number: int, tests: int) -> None:
        times = self._times
        self._bodies[-1].append([number, times, times * self._computed, 0.0, times * tests])
        self._computed = 0.0


def write(folder: Path, program: str, ranks: Sequence[RankWriter]) -> None:
    """Writes the profile of all ranks into the folder, which is made."""
    outputs.make_folder(folder, "profile")
    for rank in ranks:
        (folder / f"rank-{rank.rank}.json").write_text(json.dumps(rank.profile(program)))
