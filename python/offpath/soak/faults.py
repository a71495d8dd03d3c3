"""Does what a choice says to a victim, and heals it. Everything ends that a fault has begun."""

import contextlib
import os
import signal
import threading
import time
from pathlib import Path

from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.lab import network
from offpath.lab.cluster import Cluster
from offpath.lab.node import run_ip, run_tool
from offpath.soak import plan
from offpath.soak.devices import SoakDevices

# The kernel ends a process whose stack cannot grow. No program can report that.
_FOR_STACKS = 64 * 1024
_ENDS_WITHIN_S = 5.0  # after kill -9
_RANK_VARIABLES = (b"OMPI_COMM_WORLD_RANK", b"PMI_RANK")


class Fault:
    """One fault of one run. `start` returns at once; the fault strikes at its moment, in a thread of its own.
    `end` takes back what was done, except that the dead stay dead."""

    def __init__(self, choice: plan.Choice, after_s: float, cluster: Cluster, devices: SoakDevices):
        self._choice, self._after_s = choice, after_s
        self._cluster, self._devices = cluster, devices
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._undo = contextlib.ExitStack()
        self._began = time.monotonic()
        self.struck_s: float | None = None  # seconds after `start`; None: the run had ended before
        self.error: Exception | None = None

    def start(self) -> None:
        self._began = time.monotonic()
        if self._choice.fault != plan.NONE:
            self._thread.start()

    def end(self) -> None:
        """Ends the fault. Raises OffpathError if it could not be done or taken back."""
        self._over.set()
        if self._choice.fault != plan.NONE:
            self._thread.join()
        if self.error is not None:
            raise OffpathError(
                Code.JOB_FAILED, f"the fault {self._choice.fault} could not be done: {self.error}"
            )

    def _run(self) -> None:
        try:
            with self._undo:
                if self._over.wait(self._after_s) or not self._strike():
                    return
                self._over.wait(self._choice.lasts_s)
        except Exception as error:
            self.error = error

    def _strike(self) -> bool:
        choice = self._choice
        if choice.fault == plan.RANK:
            pid = rank_process(choice.victim)
            if pid is None:
                return False
            self._struck()
            os.kill(pid, signal.SIGKILL)
            return True
        if choice.fault == plan.LINK:
            end = network.port(choice.victim)
            run_ip([f"link set {end} down"])
            self._struck()
            self._undo.callback(run_ip, [f"link set {end} up"])
            return True
        daemon = self._devices.victim(choice.victim).process.pid
        self._struck()
        if choice.fault == plan.RESTART:
            self._devices.replace(choice.victim)
            return True
        if choice.fault in plan.KILLS:
            os.kill(daemon, signal.SIGKILL)
            # Otherwise it may seem to live when the run ends now, and gets no successor.
            self._devices.victim(choice.victim).process.wait(_ENDS_WITHIN_S)
            # OpenSHMEM's PEs attach again.
            self._devices.revive()
        elif choice.fault == plan.STOP:
            os.kill(daemon, signal.SIGSTOP)
            self._undo.callback(_signal, daemon, signal.SIGCONT)
        elif choice.fault == plan.MEMORY:
            pages = int(Path(f"/proc/{daemon}/statm").read_text().split()[0])
            limit = pages * os.sysconf("SC_PAGE_SIZE") + _FOR_STACKS
            run_tool(["prlimit", "--pid", str(daemon), f"--as={limit}:"])
            self._undo.callback(_lift_limit, daemon)
        else:
            raise ValueError(choice.fault)
        return True

    def _struck(self) -> None:
        self.struck_s = time.monotonic() - self._began


def rank_process(rank: int) -> int | None:
    """The process of this rank of the job that runs in the lab. None if there is none."""
    marks = [name + b"=%d" % rank for name in _RANK_VARIABLES]
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(mark in variables for mark in marks):
            return int(entry.name)
    return None


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _lift_limit(pid: int) -> None:
    if Path(f"/proc/{pid}").exists():
        with contextlib.suppress(OffpathError):  # it has just ended
            run_tool(["prlimit", "--pid", str(pid), "--as=unlimited:"])
