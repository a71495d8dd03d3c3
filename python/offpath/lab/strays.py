"""Processes that a job left running in the lab."""

import contextlib
import os
import signal
import time
from pathlib import Path

from offpath.lab import owner

STRAY_SECONDS = 2.0


def end(keep: set[int], seconds: float = STRAY_SECONDS) -> list[str]:
    """Ends all processes in the lab except process 1, this command, and `keep`, which are the nodes and the
    devices. They have `seconds` to end by themselves. Returns the complaints."""
    keep = keep | {1, os.getpid()}
    deadline = time.monotonic() + seconds
    while strays := [pid for pid in _processes() if pid not in keep]:
        if time.monotonic() > deadline:
            names = sorted({_name(pid) for pid in strays})
            for pid in strays:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return [f"the job left processes running, which were ended: {', '.join(names)}"]
        time.sleep(0.02)
    return []


def _processes() -> list[int]:
    return [
        int(name)
        for name in os.listdir("/proc")
        if name.isdigit() and owner.start_time(int(name)) is not None
    ]


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "?"
