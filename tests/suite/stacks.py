"""Shows where the threads of a test are that seems to hang."""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

# A test that waits for something that does not come uses less of a core than this.
_IDLE_SHARE = 0.5
_MOST_PROCESSES = 24
_LIMIT_S = 30.0


def idle(processes: Callable[[], list[int]], seconds: float) -> bool:
    """Whether the processes hardly use a core. Looks at them for `seconds`."""
    before = _cpu_s(processes())
    time.sleep(seconds)
    return _cpu_s(processes()) - before < _IDLE_SHARE * seconds


def show(processes: list[int], output: TextIO) -> None:
    """Prints the stacks of all threads, if there is a debugger and it may look at them."""
    debugger = shutil.which("gdb")
    if debugger is None:
        return
    for process in processes[:_MOST_PROCESSES]:
        command = [debugger, "-nx", "-batch", "-p", str(process), "-ex", "thread apply all bt 14"]
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            name = Path(f"/proc/{process}/comm").read_text().strip()
            said = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                errors="replace",
                timeout=_LIMIT_S,
            ).stdout
            print(f"{process} {name}", file=output)
            lines = (line[:160] for line in said.splitlines() if line.startswith(("#", "Thread ")))
            print(*(f"  {line}" for line in lines), sep="\n", file=output, flush=True)


def _cpu_s(processes: list[int]) -> float:
    ticks = 0
    for process in processes:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
