"""The two consoles: results go to stdout, everything else to stderr, so that results can be piped."""

import sys

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

_PIPED_WIDTH = 200  # of tables that go to a file or a pipe

out = Console(highlight=False, width=None if sys.stdout.isatty() else _PIPED_WIDTH)
err = Console(stderr=True, highlight=False)

__all__ = ["out", "err", "escape", "note", "progress", "warn"]


def note(message: str) -> None:
    err.print(f"[dim]offpath:[/dim] {escape(message)}", soft_wrap=True)


def warn(message: str) -> None:
    err.print(f"[yellow]offpath: warning:[/yellow] {escape(message)}", soft_wrap=True)


def progress() -> Progress:
    """The bar of a measurement of many runs; it vanishes at the end."""
    return Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=err, transient=True)
