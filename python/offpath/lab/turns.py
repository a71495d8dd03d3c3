"""Short turns for processes that share a core.

On a cluster every node has cores of its own. In the lab, the ranks of several nodes compute on one core.
Linux lets each of them run for a whole timer tick or more, commonly 4 ms. So a rank that is about to post an
operation may wait that long for another rank's turn to end. The lab therefore asks for short slices and makes
the scheduler check them: on each shared core, a process wakes up at regular intervals and sleeps again.

Processes have had slices of their own since Linux 6.12, and child processes inherit them. On older kernels,
turns are the kernel's.
"""

import contextlib
import ctypes
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.lab.placement import NodePlacement

DEFAULT_US = 200
LEAST_US, MOST_US = 100, 4000
SLICE_SHARE = 2  # a slice ends well before the next beat checks it
LEAST_SLICE_NS = 100_000  # the least that the kernel accepts

_BEAT = Path(__file__).with_name("beat.py")
_SYSCALLS = {"x86_64": (314, 315), "aarch64": (274, 275)}  # sched_setattr, sched_getattr


class _Attributes(ctypes.Structure):
    """struct sched_attr of sched_setattr(2), its first version."""

    _fields_ = [
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
    ]


class Turns:
    """Turns of `microseconds` on `cpus`, for this process and whatever it starts from now on, until `end`."""

    def __init__(self, microseconds: int, cpus: list[int]):
        self.microseconds = microseconds
        self._beats: list[subprocess.Popen] = []
        self._slice_before = slice_ns()
        slice_wanted = max(microseconds * 1000 // SLICE_SHARE, LEAST_SLICE_NS)
        self.are_short = self._slice_before is not None and set_slice_ns(slice_wanted)
        if not self.are_short:
            return
        try:
            for cpu in cpus:
                self._beats.append(
                    subprocess.Popen(
                        [sys.executable, "-I", "-S", str(_BEAT), str(cpu), str(microseconds)],
                        stdin=subprocess.DEVNULL,
                        start_new_session=True,
                    )
                )
        except BaseException:
            self.end()
            raise

    def processes(self) -> set[int]:
        return {beat.pid for beat in self._beats}

    def end(self) -> None:
        for beat in self._beats:
            beat.kill()
            beat.wait()
        self._beats = []
        if self.are_short and self._slice_before is not None:
            set_slice_ns(self._slice_before)
        self.are_short = False


def length_s(microseconds: int, cpu: int, seconds: float = 0.3) -> float | None:
    """How long turns of `microseconds` really last on `cpu`: a process that computes there counts how often
    it is interrupted. None if turns are the kernel's."""
    turns = Turns(microseconds, [cpu])
    allowed = os.sched_getaffinity(0)
    try:
        if not turns.are_short:
            return None
        os.sched_setaffinity(0, {cpu})
        _compute(0.2)  # until the beats have begun
        before = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
        _compute(seconds)
        interrupted = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - before
        return seconds / max(interrupted, 1)
    finally:
        turns.end()
        os.sched_setaffinity(0, allowed)


def _compute(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def shared_cores(placements: list[NodePlacement], ranks_per_node: int) -> list[int]:
    """The cores that several ranks, or several devices, share."""
    load: dict[int, float] = {}
    for placement in placements:
        for cpus, processes in ((placement.host, ranks_per_node), (placement.device, 1)):
            for cpu in cpus:
                load[cpu] = load.get(cpu, 0.0) + processes / len(cpus)
    return sorted(cpu for cpu, processes in load.items() if processes > 1)


def check(microseconds: int | None) -> None:
    if microseconds is not None and not LEAST_US <= microseconds <= MOST_US:
        raise OffpathError(
            Code.OPTION,
            f"turns of {microseconds} us are out of range",
            f"use {LEAST_US} to {MOST_US} us, or `kernel`",
        )


def slice_ns() -> int | None:
    """The time slice of this process. None if the kernel does not tell, or if the process has no ordinary
    policy."""
    attributes = _get()
    return attributes.runtime or None if attributes and attributes.policy == os.SCHED_OTHER else None


def set_slice_ns(nanoseconds: int) -> bool:
    """Sets the slice and returns whether the kernel accepted it. Niceness does not change."""
    attributes = _get()
    if attributes is None:
        return False
    attributes.flags, attributes.runtime = 0, nanoseconds
    with contextlib.suppress(OSError):
        _call(0, 0, ctypes.byref(attributes), 0)
        return slice_ns() == nanoseconds
    return False


def _get() -> _Attributes | None:
    attributes = _Attributes(size=ctypes.sizeof(_Attributes))
    with contextlib.suppress(OSError):
        _call(1, 0, ctypes.byref(attributes), ctypes.sizeof(attributes), 0)
        return attributes
    return None


def _call(which: int, *arguments) -> None:
    numbers = _SYSCALLS.get(os.uname().machine)
    if numbers is None or ctypes.CDLL(None, use_errno=True).syscall(numbers[which], *arguments) != 0:
        raise OSError(ctypes.get_errno(), "sched_setattr")
