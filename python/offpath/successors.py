"""Planned restarts of daemons on this node: `offpath control restart` and `drain`.

A successor is started with the command line of the daemon that it replaces. It takes its place in the session
directory when it is ready (`offpathd --replace`). The old daemon keeps its sessions and ends with the last of
them, so jobs that run are not disturbed.
"""

import os
import select
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from offpath import control
from offpath.codes import Code
from offpath.errors import OffpathError

_READY_SECONDS = 30.0
_GONE_SECONDS = 5.0
_WITH_VALUE = ("--ready-fd",)  # options that have no meaning for the successor
_NAME = b"offpathd"


@dataclass(frozen=True)
class Daemon:
    """A daemon that serves a session directory on this node."""

    directory: Path
    pid: int

    @property
    def pid_file(self) -> Path:
        return self.directory / f"{socket.gethostname()}.pid"


def default_directory() -> Path:
    return Path(os.environ.get("OFFPATH_DIR") or f"/tmp/offpath-{os.geteuid()}")


def serving(directories: list[Path] | None) -> list[Daemon]:
    """The daemons of these directories. None: those of the jobs of `offpath run` on this node, and that of
    the default directory."""
    if directories is None:
        directories = [job.session for job in control.running()] + [default_directory()]
    found = [_daemon(directory) for directory in dict.fromkeys(directories)]
    return [daemon for daemon in found if daemon is not None]


def _daemon(directory: Path) -> Daemon | None:
    try:
        pid = int((directory / f"{socket.gethostname()}.pid").read_text().split()[0])
        name = Path(f"/proc/{pid}/comm").read_bytes().strip()
    except (OSError, ValueError, IndexError):
        return None
    return Daemon(directory, pid) if name == _NAME else None


def successor_command(words: list[str], program: str | None) -> list[str]:
    """The command line of the successor of a daemon with the command line `words`. Raises OffpathError if it
    cannot have one."""
    for option in ("--listen", "--key-fd"):
        if any(word.split("=")[0] == option for word in words):
            raise OffpathError(
                Code.DAEMON,
                f"a daemon with {option} is not restarted",
                "drain it, wait until it has ended, and start another one",
            )
    kept, skip = [], False
    for word in words[1:]:
        if skip:
            skip = False
        elif word in _WITH_VALUE:
            skip = True
        elif word != "--replace" and word.split("=")[0] not in _WITH_VALUE:
            kept.append(word)
    return [program or words[0], *kept, "--replace"]


def restart(daemon: Daemon, program: str | None) -> Daemon:
    """Starts a successor, and returns it when it serves. `program`: another offpathd than before."""
    process = Path(f"/proc/{daemon.pid}")
    try:
        words = (process / "cmdline").read_bytes().decode().rstrip("\0").split("\0")
        environment = dict(
            entry.split("=", 1)
            for entry in (process / "environ").read_bytes().decode(errors="surrogateescape").split("\0")
            if "=" in entry
        )
        folder = os.readlink(process / "cwd")
        words[0] = words[0] if "/" not in words[0] else str(Path(folder, words[0]))
    except OSError as error:
        raise OffpathError(Code.DAEMON, f"pid {daemon.pid} cannot be looked at: {error.strerror}") from error
    command = successor_command(words, program)
    read, write = os.pipe()
    try:
        with open(daemon.directory / "successor.err", "w+b") as errors:
            (daemon.directory / "successor.err").unlink()
            started = subprocess.Popen(
                [*command, "--ready-fd", str(write)],
                env=environment,
                cwd=folder,
                pass_fds=[write],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                start_new_session=True,
            )
            os.close(write)
            write = -1
            readable, _, _ = select.select([read], [], [], _READY_SECONDS)
            if readable and os.read(read, 1) == b"1":
                return Daemon(daemon.directory, started.pid)
            started.kill()
            started.wait()
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip()
    except OSError as error:
        raise OffpathError(Code.NOT_INSTALLED, f"{command[0]} cannot be run: {error.strerror}") from error
    finally:
        os.close(read)
        if write >= 0:
            os.close(write)
    raise OffpathError(
        Code.DAEMON, f"the successor of pid {daemon.pid} did not start; the old one goes on: {said}"
    )


def drain(daemon: Daemon) -> None:
    """The daemon takes no more clients, and ends with its last session. Returns when it has stopped
    listening."""
    os.kill(daemon.pid, signal.SIGUSR1)
    deadline = time.monotonic() + _GONE_SECONDS
    while daemon.pid_file.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    if daemon.pid_file.exists():
        raise OffpathError(Code.DAEMON, f"pid {daemon.pid} still serves {daemon.directory}", "does it hang?")
