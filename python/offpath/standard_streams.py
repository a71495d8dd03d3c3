"""Standard output and standard error whose reader may have left, or whose disk may be full.

A command that still has to write a file that its user named goes on without the stream. Any other one ends,
since nobody would see what it does.
"""

import errno
import os
import sys
from typing import Any, TextIO

from offpath import outputs
from offpath.codes import Code
from offpath.errors import OffpathError

CODE_OF_BROKEN_PIPE = 141  # as of a program that SIGPIPE has ended


class Stream:
    """A stream of text that notes its first failure. Everything that is not here is the stream's own."""

    def __init__(self, stream: TextIO, name: str):
        self._stream, self._name = stream, name
        self.failure: OSError | None = None

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            self._fail(error)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._fail(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _fail(self, error: OSError) -> None:
        self.failure = self.failure or error
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
        if not outputs.promised():
            self.end()

    def end(self) -> None:
        """Ends the command if the stream has failed."""
        if self.failure is None:
            return
        if self.failure.errno == errno.EPIPE:
            raise SystemExit(CODE_OF_BROKEN_PIPE)
        if self._name != "standard error":
            raise OffpathError(
                Code.OUTPUT_FILE, f"{self._name} cannot be written: {self.failure.strerror}", ""
            )


def watch() -> None:
    """Puts such streams in the place of sys.stdout and sys.stderr. One that is closed becomes /dev/null."""
    for attribute, name in (("stdout", "standard output"), ("stderr", "standard error")):
        stream = getattr(sys, attribute)
        if stream is None:
            stream = open(os.devnull, "w")  # noqa: SIM115, it lives as long as the process
        if not isinstance(stream, Stream):
            setattr(sys, attribute, Stream(stream, name))


def finish() -> None:
    """Writes what is left, and ends the command if its output did not arrive."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
        if isinstance(stream, Stream):
            stream.end()
