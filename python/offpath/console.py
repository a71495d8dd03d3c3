"""The two consoles. Results go to stdout and everything else to stderr, so that users can pipe results.

`out` and `err` are made when they are first used: a job that prints nothing does not load rich.
"""

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, cast

from offpath.codes import Code, with_code

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    out: Console
    err: Console

_NEWS_S = 5.0
_PIPED_WIDTH = 200  # width of tables that go to a file or a pipe


def __getattr__(name: str) -> "Console":
    if name not in ("out", "err"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rich.console import Console

    made = (
        Console(highlight=False, width=None if sys.stdout.isatty() else _PIPED_WIDTH)
        if name == "out"
        else Console(stderr=True, highlight=False)
    )
    globals()[name] = made
    return made


def _err() -> "Console":
    return sys.modules[__name__].err


def escape(text: str) -> str:
    """`text` with nothing in it that rich takes for markup."""
    from rich import markup

    return markup.escape(text)


def note(message: str) -> None:
    _say("offpath:", "dim", "2", message)


def warn(code: Code, message: str) -> None:
    _say("offpath: warning:", "yellow", "33", with_code(message, code))


def _say(label: str, style: str, ansi: str, message: str) -> None:
    """A line on stderr. A job that says little does not load rich for it."""
    if "err" in globals():
        _err().print(f"[{style}]{label}[/{style}] {escape(message)}", soft_wrap=True)
        return
    marked = f"\033[{ansi}m{label}\033[0m" if _is_coloured() else label
    print(marked, message, file=sys.stderr, flush=True)


def _is_coloured() -> bool:
    """By the rules that rich follows."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") in ("dumb", "unknown"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stderr.isatty()


def progress() -> "Progress | PlainProgress":
    """Shows the progress of many runs: as a bar that disappears at the end, or as plain lines if stderr is
    not a terminal."""
    if not _err().is_terminal:
        return PlainProgress()
    # Loaded only here, since every `offpath run` would pay for it.
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=_err(),
        transient=True,
    )


def run_with_news(command: list[str], what: str) -> "subprocess.CompletedProcess[str]":
    """Runs a command to its end and returns what it printed. Says every few seconds that it goes on."""
    begin = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while True:
            try:
                out, err = process.communicate(timeout=_NEWS_S)
                return subprocess.CompletedProcess(command, process.returncode, out, err)
            except subprocess.TimeoutExpired:
                note(f"{what}: {time.monotonic() - begin:.0f} s so far")
            except BaseException:
                process.kill()
                raise


class PlainProgress:
    """Progress for files and pipes. Prints the first step, and later steps at most every few seconds, one
    line each. Has the interface of rich's Progress for a single task."""

    SECONDS = 5.0  # between two lines

    def __init__(self) -> None:
        self.console = _err()
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
