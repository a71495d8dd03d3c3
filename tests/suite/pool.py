"""Runs many tests, several at the same time, on one thread."""

import json
import os
import selectors
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from suite.case import Result, Test
from suite.keeper import keep
from suite.outcome import judge

Expectations = dict[str, float]


@dataclass
class Running:
    test: Test
    keeper: int
    since: float
    room: Path
    log: Path


class Pool:
    """Starts tests while their slots fit into `capacity`, those that are expected to take longest first.

    `finished` is called with each result, `tick` about once a second. The temporary directories lie in a
    folder with a short name, since paths of sockets may have 107 characters at most.
    """

    def __init__(
        self,
        capacity: int,
        expected_s: Expectations,
        finished: Callable[[Result], None],
        tick: Callable[["Pool"], None],
    ):
        self.capacity = capacity
        self.expected_s = expected_s
        self.finished = finished
        self.tick = tick
        self.running: dict[int, Running] = {}
        self.waiting: list[Test] = []
        self._free = capacity
        self._locks: set[str] = set()
        self._number = 0
        self._selector = selectors.DefaultSelector()
        self._folder = Path(tempfile.mkdtemp(prefix="ot.", dir="/tmp"))
        self._folder.chmod(0o755)

    def run(self, tests: Iterable[Test]) -> None:
        """Runs all of them to their ends."""
        self.waiting = sorted(tests, key=self._expected, reverse=True)
        while self.waiting or self.running:
            self._start_what_fits()
            for key, _ in self._selector.select(timeout=1.0):
                self._end(key.fd)
            self.tick(self)

    def close(self) -> None:
        """Ends what still runs, and removes all files."""
        for each in self.running.values():
            os.kill(each.keeper, signal.SIGTERM)
            os.waitpid(each.keeper, 0)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _expected(self, test: Test) -> float:
        return self.expected_s.get(test.name, 30.0 if test.pytest else 3.0)

    def left_s(self) -> float:
        """About how long all that is left will take, if it takes as long as before."""
        now = time.monotonic()
        work = sum(self._expected(test) * self._slots(test) for test in self.waiting)
        work += sum(
            max(self._expected(each.test) - (now - each.since), 0.5) * self._slots(each.test)
            for each in self.running.values()
        )
        return work / self.capacity

    def _slots(self, test: Test) -> int:
        return min(test.slots, self.capacity)

    def _start_what_fits(self) -> None:
        for test in list(self.waiting):
            if self._free >= self._slots(test) and not self._locks.intersection(test.locks):
                self.waiting.remove(test)
                self._start(test)

    def _start(self, test: Test) -> None:
        self._number += 1
        room = self._folder / str(self._number)
        log = self._folder / f"{self._number}.log"
        read, write = os.pipe()
        if test.pytest:
            test.environment["OFFPATH_TEST_CASES"] = str(self._cases(room))
        keeper = keep(test, room, log, write)
        os.close(write)
        self._free -= self._slots(test)
        self._locks.update(test.locks)
        self.running[read] = Running(test, keeper, time.monotonic(), room, log)
        self._selector.register(read, selectors.EVENT_READ)

    def _cases(self, room: Path) -> Path:
        files = room.with_suffix(".files")
        files.mkdir()
        return files / "cases.jsonl"

    def _end(self, read: int) -> None:
        each = self.running.pop(read)
        self._selector.unregister(read)
        said = b"".join(iter(lambda: os.read(read, 65536), b""))
        os.close(read)
        os.waitpid(each.keeper, 0)
        self._free += self._slots(each.test)
        self._locks.difference_update(each.test.locks)
        seconds = time.monotonic() - each.since
        kept = json.loads(said) if said else {"code": 1, "seconds": seconds, "cpu_s": 0.0, "left": []}
        output = each.log.read_text(errors="replace") if each.log.exists() else ""
        files = each.room.with_suffix(".files")
        result = judge(each.test, kept, output, files)
        each.log.unlink(missing_ok=True)
        shutil.rmtree(files, ignore_errors=True)
        self.finished(result)
