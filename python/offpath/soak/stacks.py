"""The stacks of all processes in the lab, taken with gdb where a run hangs."""

import os
import shutil
import subprocess
from pathlib import Path

_SECONDS = 10.0
_OTHERS = {"sh", "sleep", "python3", "python", "gdb", "unshare", "nsenter", "taskset"}


def of_all(daemons: set[int]) -> str:
    """Empty if there is no gdb."""
    if shutil.which("gdb") is None:
        return ""
    text = ""
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    # Ranks first: their launcher ends them when the run's time is over.
    for pid in sorted(pids, key=lambda pid: (pid in daemons, -pid)):
        try:
            name = Path(f"/proc/{pid}/comm").read_text().strip()
        except OSError:
            continue
        if pid == 1 or (name in _OTHERS and pid not in daemons):
            continue
        try:
            done = subprocess.run(
                ["gdb", "-p", str(pid), "-batch", "-nx", "-ex", "thread apply all bt"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        text += f"===== {name} {pid}\n{done.stdout}\n"
    return text
