"""Passes mpirun's error output on, without one harmless line.

mpirun's rsh launcher and the agent that it forks both put the agent into its process group. If the agent is
faster, as happens on a busy machine, the launcher prints an error although all is well.
"""

import os
import re
import threading

_NOISE = re.compile(
    rb"\[[\w.-]+:\d+\] plm:rsh: Warning: setpgid\(\d+,\d+\) failed in parent with errno=.*\n?"
)
_SUSPECT = b"["


class StderrRelay:
    """`descriptor` is the end to give to mpirun. `finish` returns when everything has been
    written to `target`."""

    def __init__(self, target: int):
        self._read, self.descriptor = os.pipe()
        self._target = target
        self._thread = threading.Thread(target=self._relay, daemon=True)
        self._thread.start()

    def finish(self, seconds: float = 2.0) -> None:
        os.close(self.descriptor)
        # A process that outlives mpirun may still hold the pipe, so the wait is limited.
        self._thread.join(seconds)

    def _relay(self) -> None:
        held = b""
        while data := os.read(self._read, 65536):
            passed, held = sift(held + data)
            self._write(passed)
        self._write(held)
        os.close(self._read)

    def _write(self, data: bytes) -> None:
        while data:
            try:
                data = data[os.write(self._target, data) :]
            except OSError:
                return


def sift(data: bytes) -> tuple[bytes, bytes]:
    """What to pass on now, and an unfinished line that may still become the noise."""
    whole, newline, rest = data.rpartition(b"\n")
    passed = _NOISE.sub(b"", whole + newline)
    return (passed, rest) if rest.startswith(_SUSPECT) else (passed + rest, b"")
