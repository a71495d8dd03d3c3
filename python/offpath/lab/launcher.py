"""Runs one launcher, such as mpirun, to its end: its output, its time limit, and MPICH's runs that hang."""

import os
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from offpath import metrics
from offpath.lab.stderr import StderrRelay

ABORT_SECONDS = 4.0
# Over TCP, MPICH 4.0 does not always end: in about one run of ten, and more often with its progress thread, a
# rank waits in MPI_Finalize forever. This also happens without offpath. If the program has written its
# results by then, as a JSON object on its last line, they count, and the run is ended after MPICH_FINALIZE_S.
MPICH_FINALIZE_S = 5.0
TIMED_OUT = 124


@dataclass
class Launched:
    exit_code: int = 0
    stdout: str = ""  # empty if it went directly to the terminal
    stderr: str = ""
    complaints: list[str] = field(default_factory=list)
    hung_s: float = 0.0  # how long the program had hung before it was ended


def run(
    command: list[str],
    environment: dict[str, str],
    capture_in: Path | None,
    timeout: float | None,
    limit: float | None,
) -> Launched:
    """Ends the run after `timeout`, the user's, or else after `limit` seconds. `capture_in`: a folder for
    the captured output, or None."""
    if capture_in is None:
        return _wait_for(command, environment, None, None, 2, timeout, limit)
    with tempfile.TemporaryFile(dir=capture_in) as out, tempfile.TemporaryFile(dir=capture_in) as err:
        launched = _wait_for(command, environment, subprocess.DEVNULL, out, err.fileno(), timeout, limit)
        launched.stdout, launched.stderr = _text_in(out), _text_in(err)
        return launched


def _wait_for(
    command: list[str],
    environment: dict[str, str],
    stdin: int | None,
    stdout: IO[bytes] | None,
    stderr: int,
    timeout: float | None,
    limit: float | None,
) -> Launched:
    launched = Launched()
    relay = StderrRelay(stderr)
    process = subprocess.Popen(command, env=environment, stdin=stdin, stdout=stdout, stderr=relay.descriptor)
    try:
        if timeout is not None or limit is None or stdout is None:
            code = process.wait(timeout or limit)
        else:
            code, launched.hung_s = _wait_for_mpich(process, stdout, limit)
    except subprocess.TimeoutExpired:
        name = "--timeout " if timeout is not None else ""
        launched.complaints.append(f"the run took longer than {name}{timeout or limit:.3g} s and was ended")
        _abort(process)
        code = TIMED_OUT
    except BaseException:
        _abort(process)
        raise
    finally:
        relay.finish()
    launched.exit_code = code if code >= 0 else 128 - code
    return launched


def _text_in(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _wait_for_mpich(process: subprocess.Popen, stdout: IO[bytes], limit: float) -> tuple[int, float]:
    """Like process.wait(limit), but ends a program that hangs after it has written its results. Returns the
    exit code, and how long the program had hung."""
    started, results = time.monotonic(), None
    while True:
        try:
            return process.wait(0.1), 0.0
        except subprocess.TimeoutExpired:
            now = time.monotonic()
            if now - started > limit:
                raise
        if results is None and metrics.last_json_object(_written(stdout)) is not None:
            results = now
        if results is not None and now - results > MPICH_FINALIZE_S:
            written = os.fstat(stdout.fileno()).st_size
            _abort(process)
            os.ftruncate(stdout.fileno(), written)  # removes mpiexec's own last messages
            return 0, time.monotonic() - results


def _written(file: IO[bytes]) -> str:
    """The content of the file. The position at which the program writes stays the same."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode(errors="replace")


def _abort(process: subprocess.Popen) -> None:
    process.terminate()
    try:
        process.wait(ABORT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
