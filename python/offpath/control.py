"""Switches offloading in running jobs. Rank 0 reads a file, and all ranks switch at the same call
(docs/tuning.md)."""

import os
from dataclasses import dataclass
from pathlib import Path

from offpath import outputs, variable_checks
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.lab import owner, rooms

NAME = "control"
PREFIX = "offpath-run-"  # of the directories of sessions


@dataclass(frozen=True)
class Job:
    """A job that this user started with `offpath run` on this node."""

    session: Path

    @property
    def file(self) -> Path:
        return self.session / NAME


def running(root: Path | None = None) -> list[Job]:
    found = []
    for session in sorted((root or rooms.root()).glob(f"{PREFIX}*")):
        try:
            mine = session.stat().st_uid == os.geteuid()
            alive = mine and owner.is_alive((session / "owner").read_text())
        except OSError:
            continue
        if alive:
            found.append(Job(session))
    return found


def text_of(state: str, ops: str | None) -> str:
    if state not in ("on", "off", "ops"):
        raise OffpathError(Code.OPTION, f"{state!r} is not known", "use on, off, or ops LIST")
    if (state == "ops") != bool(ops):
        raise OffpathError(
            Code.OPTION,
            "ops and a list of operations belong together",
            "for example: offpath control ops ibcast,ialltoall",
        )
    if ops:
        variable_checks.check_operations(ops, "ops")
    return f"ops {ops}" if ops else state


def tell(file: Path, text: str) -> None:
    """Replaces the file in one step, so that rank 0 reads either the old line or the new one."""
    outputs.write(file, text + "\n", results=False)
