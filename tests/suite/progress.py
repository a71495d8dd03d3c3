"""Says where a run is: on a terminal in one line that is written again, in a log in a line a minute."""

import sys
import time
from typing import TextIO

from suite.case import Outcome, Result
from suite.pool import Pool

_LOG_EVERY_S = 60.0


class Progress:
    """Counts results. A failure is shown in full as soon as it is known."""

    def __init__(self, tests: int, stream: TextIO = sys.stdout):
        self.tests = tests
        self.results: list[Result] = []
        self._stream = stream
        self._terminal = stream.isatty()
        self._begin = time.monotonic()
        self._last_line = self._begin

    def finished(self, result: Result) -> None:
        self.results.append(result)
        if result.outcome is Outcome.FAILED:
            self._clear()
            print(f"-- {result.test.name} FAILED: {result.why}\n{result.output.rstrip()}", file=self._stream)
            print(f"-- alone: {result.test.alone}", file=self._stream, flush=True)

    def tick(self, pool: Pool) -> None:
        now = time.monotonic()
        if not self._terminal and now - self._last_line < _LOG_EVERY_S:
            return
        self._last_line = now
        line = self.line(pool)
        if self._terminal:
            self._stream.write(f"\r\033[K{line[:118]}")
            self._stream.flush()
        else:
            print(line, file=self._stream, flush=True)

    def line(self, pool: Pool) -> str:
        counts = totals(self.results)
        longest = min(pool.running.values(), key=lambda each: each.since, default=None)
        now = time.monotonic()
        return (
            f"{_clock(now - self._begin)} {len(self.results)} of {self.tests} tests"
            f", {counts[Outcome.FAILED]} failed, {counts[Outcome.SKIPPED]} skipped"
            f", about {_clock(pool.left_s())} left"
            + (f"; since {now - longest.since:.0f} s: {longest.test.name}" if longest else "")
        )

    def end(self) -> None:
        self._clear()

    def _clear(self) -> None:
        if self._terminal:
            self._stream.write("\r\033[K")


def totals(results: list[Result]) -> dict[Outcome, int]:
    """The number of cases by outcome. A test that failed counts at least one failure."""
    sums = dict.fromkeys(Outcome, 0)
    for result in results:
        for outcome, number in result.counts.items():
            sums[outcome] += number
        if result.outcome is Outcome.FAILED and not result.counts[Outcome.FAILED]:
            sums[Outcome.FAILED] += 1
    return sums


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
