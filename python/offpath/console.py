"""The two consoles. Results go to stdout and everything else to stderr, so that users can pipe results."""

import sys
import time
from typing import TYPE_CHECKING, cast

from rich.console import Console
from rich.markup import escape

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

from offpath.codes import Code, with_code

_PIPED_WIDTH = 200  # width of tables that go to a file or a pipe

out = Console(highlight=False, width=None if sys.stdout.isatty() else _PIPED_WIDTH)
err = Console(stderr=True, highlight=False)

__all__ = ["out", "err", "escape", "note", "progress", "warn"]


def note(message: str) -> None:
    err.print(f"[dim]offpath:[/dim] {escape(message)}", soft_wrap=True)


def warn(code: Code, message: str) -> None:
    err.print(f"[yellow]offpath: warning:[/yellow] {escape(with_code(message, code))}", soft_wrap=True)


def progress() -> "Progress | PlainProgress":
    """Shows the progress of many runs: as a bar that disappears at the end, or as plain lines if stderr is
    not a terminal."""
    if not err.is_terminal:
        return PlainProgress()
    # Loaded only here, since every `offpath run` would pay for it.
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=err,
        transient=True,
    )


class PlainProgress:
    """Progress for files and pipes. Prints the first step, and later steps at most every few seconds, one
    line each. Has the interface of rich's Progress for a single task."""

    SECONDS = 5.0  # between two lines

    def __init__(self) -> None:
        self.console = err
        self._total = self._done = 0
        self._description, self._said, self._said_at = "", "", float("-inf")

    def __enter__(self) -> "PlainProgress":
        return self

    def __exit__(self, *_) -> None:
        pass

    def add_task(self, description: str, total: int) -> "TaskID":
        self._total = total
        self._show(description)
        return cast("TaskID", 0)

    def update(self, task: "TaskID", advance: int = 0, description: str | None = None) -> None:
        self._done += advance
        self._show(description)

    def advance(self, task: "TaskID") -> None:
        self.update(task, 1)

    def _show(self, description: str | None) -> None:
        self._description = self._description if description is None else description
        line = f"{self._done} of {self._total} done; {self._description}"
        if self._description and line != self._said and time.monotonic() - self._said_at >= self.SECONDS:
            self._said, self._said_at = line, time.monotonic()
            note(line)
