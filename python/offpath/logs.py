"""Logs of devices: which of them explains why a job failed, and copies that outlive the job."""

import re
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

LAST_LINES = 8
_TIME = re.compile(r"\[(\d\d:\d\d:\d\d\.\d+)\] offpathd\[\S+\] (warning|error|critical):")


def last_lines(*paths: Path) -> str:
    """The last lines of the logs, each on an indented line of its own. Empty if nothing was logged."""
    lines = [
        line for path in paths if path.exists() for line in path.read_text(errors="replace").splitlines()
    ]
    return "".join("\n  " + line for line in lines[-LAST_LINES:])


def first_to_complain(logs: Iterable[Path]) -> Path | None:
    """The log with the earliest warning or error. A failure spreads, and the log of the device that met it
    first says the most."""
    found = []
    for log in logs:
        text = log.read_text(errors="replace") if log.exists() else ""
        if match := _TIME.search(text):
            found.append((match[1], log))
    return min(found)[1] if found else None


def folder() -> Path:
    """Makes a new directory for logs to keep."""
    return Path(tempfile.mkdtemp(prefix="offpath-logs-"))


def keep(session: Path, into: Path) -> None:
    """Copies the logs of a session that is about to be removed."""
    into.mkdir(parents=True, exist_ok=True)
    for path in [*session.glob("*.log"), *session.glob("*.err")]:
        if path.suffix == ".log" or path.stat().st_size > 0:
            shutil.copyfile(path, into / path.name)
