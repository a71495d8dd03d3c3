"""Traces of runs (docs/trace.md): reading what processes wrote, what it means, and other formats for it."""

from pathlib import Path

SUFFIX = ".offtrace"
# What a trace is converted to, in the same directory.
PERFETTO = "trace.perfetto-trace"
OTF2 = "otf2"


def find(folder: Path) -> list[Path]:
    """The files that processes wrote there."""
    return sorted(folder.glob(f"*{SUFFIX}"))
