"""Runs one test in a process of its own, the keeper, which owns all that the test starts.

The keeper is the parent of each process whose own parent ended (a child subreaper). So it knows the CPU time
of the whole test, and it ends what the test left running. Each test gets an empty temporary directory, where
MPI launchers put their sessions, too. After a part of its time limit, the keeper prints the stacks of a test
that does nothing, since scripts have limits of their own, which end what hangs.
"""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

from suite import stacks
from suite.case import Test

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
# What a test left running may still be ending, on a machine that is busy.
_GRACE_S = 10.0
_LOOK_AFTER = 0.45  # of the limit


class _TimedOut(Exception):
    pass


def keep(test: Test, room: Path, log: Path, report: int) -> int:
    """Forks a keeper that runs `test`, with its temporary directory at `room` and its output in `log`.

    Returns the keeper's process. When all is over, the keeper writes one JSON object to the descriptor
    `report`: `code` (None after the limit), `seconds`, `cpu_s`, and `left`, the processes that it had to end.
    """
    keeper = os.fork()
    if keeper == 0:
        code = 1
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
            os.setsid()
            said = json.dumps(_run(test, room, log))
            os.write(report, said.encode())
            code = 0
        finally:
            os._exit(code)
    return keeper


def _run(test: Test, room: Path, log: Path) -> dict:
    begin = time.monotonic()
    room.mkdir(parents=True)
    child = os.fork()
    if child == 0:
        _become(test, room, log)
    signal.signal(signal.SIGTERM, _end_all)

    def on_alarm(*_: object) -> None:
        if time.monotonic() > begin + 0.95 * test.limit_s:
            raise _TimedOut
        if stacks.idle(descendants, min(2.0, 0.1 * test.limit_s)):
            with log.open("a") as output:
                print(f"suite: idle after {time.monotonic() - begin:.0f} s:", file=output)
                stacks.show(descendants(), output)
        signal.setitimer(signal.ITIMER_REAL, max(begin + test.limit_s - time.monotonic(), 0.1))

    signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, _LOOK_AFTER * test.limit_s)
    code, cpu_s = None, 0.0
    left: list[str] = []
    try:
        while code is None:
            process, status, usage = os.wait4(-1, 0)
            cpu_s += usage.ru_utime + usage.ru_stime
            if process == child:
                code = os.waitstatus_to_exitcode(status)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except _TimedOut:
        left = _names(descendants())
        with log.open("a") as output:
            print(f"\nsuite: ended after its limit of {test.limit_s:g} s, with these processes:", file=output)
            print(*(f"  {name}" for name in left), sep="\n", file=output)
    seconds = time.monotonic() - begin
    more_s, stayed = _reap_others(wait=code is not None)
    shutil.rmtree(room, ignore_errors=True)
    return {
        "code": code,
        "seconds": seconds,
        "cpu_s": cpu_s + more_s,
        "left": left if code is None else stayed,
    }


def _become(test: Test, room: Path, log: Path) -> NoReturn:
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.closerange(3, 256)
        os.chdir(test.directory or ".")
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        environment = os.environ | {"TMPDIR": str(room)} | test.environment
        os.execvpe(test.command[0], list(test.command), environment)
    except OSError as error:
        print(f"suite: {test.command[0]}: {error}", file=sys.stderr, flush=True)
    os._exit(127)


def _reap_others(wait: bool) -> tuple[float, list[str]]:
    """Waits for what the test left running, ends it after a while, and returns its CPU time and its names."""
    cpu_s, deadline = 0.0, time.monotonic() + (_GRACE_S if wait else 0)
    stayed: list[str] = []
    while True:
        try:
            process, _, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return cpu_s, stayed
        if process:
            cpu_s += usage.ru_utime + usage.ru_stime
        elif time.monotonic() < deadline:
            time.sleep(0.01)
        else:
            running = descendants()
            stayed = stayed or _names(running)
            for process in running:
                _kill(process)
            time.sleep(0.01)


def descendants() -> list[int]:
    """All processes below this one, parents first."""
    children: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                fields = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] not in "ZX":
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = list(children.get(os.getpid(), []))
    for process in found:
        found.extend(children.get(process, []))
    return found


def _names(processes: list[int]) -> list[str]:
    names = []
    for process in processes:
        try:
            words = Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        names.append(f"{process} {' '.join(words).strip()[:200]}")
    return names


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def _end_all(*_: object) -> NoReturn:
    for process in descendants():
        _kill(process)
    os._exit(1)
