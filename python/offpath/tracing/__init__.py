"""Traces of runs (docs/trace.md): reading what processes wrote, what it means, and other formats for it."""

from pathlib import Path

SUFFIX = ".offtrace"


def find(folder: Path) -> list[Path]:
    """The files that processes wrote there."""
    return sorted(folder.glob(f"*{SUFFIX}"))
