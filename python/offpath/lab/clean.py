"""Finds and removes what killed commands have left behind. Everything carries its owner's mark."""

import contextlib
import os
import shutil
import signal
from pathlib import Path

from offpath.lab import cgroup, owner, rooms

ROOM_PREFIXES = ("offpath-lab-", "offpath-run-")


def clean() -> list[str]:
    removed = []
    for pid, mark in _inits():
        if not owner.is_alive(mark):
            os.kill(pid, signal.SIGKILL)
            removed.append(f"lab of process {mark.partition('-')[0]}, which is gone")
    removed += _rooms()
    removed += cgroup.remove_leftovers()
    return removed


def _inits() -> list[tuple[int, str]]:
    """The first processes of labs that this process sees and may end, with their owners."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            mine = entry.stat().st_uid in (os.getuid(), 0) and (
                os.getuid() == 0 or entry.stat().st_uid == os.getuid()
            )
        except OSError:
            continue
        if mine and words[1:3] == ["-m", "offpath.lab.init"] and len(words) > 3:
            found.append((int(entry.name), words[3]))
    return found


def _rooms() -> list[str]:
    removed = []
    for prefix in ROOM_PREFIXES:
        for room in rooms.root().glob(prefix + "*"):
            try:
                mark = (room / "owner").read_text().strip()
            except OSError:
                continue  # it belongs to another user, or is just being made
            if not owner.is_alive(mark):
                end_daemons(room)
                shutil.rmtree(room, ignore_errors=True)
                removed.append(str(room))
    return removed


def end_daemons(session: Path, number: int = signal.SIGTERM) -> int:
    """Signals the daemons whose pid files are in `session`, and returns their number."""
    count = 0
    for pid in daemons_of(session):
        with contextlib.suppress(OSError):
            os.kill(pid, number)
            count += 1
    return count


def daemons_of(session: Path) -> list[int]:
    """The processes of the daemons whose pid files are in `session`."""
    found = []
    for file in session.rglob("*.pid"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            pid = int(file.read_text().split()[0])
            if b"offpathd" in Path(f"/proc/{pid}/comm").read_bytes():
                found.append(pid)
    return found
