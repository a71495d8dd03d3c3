"""The owner of a lab: the pid and start time of the command that made it. The pair is never reused.

Everything that could outlive a killed command carries this mark, so that `offpath lab clean` can tell
leftovers from labs in use.
"""

import os


def start_time(pid: int) -> str | None:
    """The kernel ticks since boot at which `pid` started. None if there is no such process, or
    only a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def mark(pid: int | None = None) -> str:
    pid = os.getpid() if pid is None else pid
    return f"{pid}-{start_time(pid)}"


def is_alive(owner: str) -> bool:
    pid, _, started = owner.partition("-")
    return pid.isdigit() and start_time(int(pid)) == started
