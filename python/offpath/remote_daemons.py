"""Starts offpathd for one job on devices with operating systems of their own, and ends it with the job.

The launch agent runs a small shell script on the device. The agent is ssh, or any command that is called like
it: AGENT HOST COMMAND. The script reads the key of the job from its standard input and hands it to offpathd
through a pipe. So no command line, variable or file on the device contains the key. The script ends the
daemon when the connection ends, for whatever reason.
"""

import contextlib
import os
import secrets
import select
import shlex
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from offpath import console
from offpath.devices import RemoteDevice
from offpath.errors import OffpathError

_READY_SECONDS = 30.0
_CONNECT_SECONDS = 5
_STOP_SECONDS = 5.0
_SCRIPT = """
IFS= read -r key || exit 1
exec 4<&0
directory=$(mktemp -d) || exit 1
printf %s "$key" | {daemon} --key-fd 0 --ready-fd 3 3>&1 >&2 4<&- &
daemon=$!
unset key
exec >&2
{ while read -r more; do :; done; kill "$daemon"; } <&4 2>/dev/null &
lifeline=$!
trap 'kill "$daemon" 2>/dev/null' HUP INT TERM
wait "$daemon"
code=$?
kill "$lifeline" 2>/dev/null
rm -rf "$directory"
exit $code
"""


@dataclass(frozen=True)
class StartOptions:
    agent: str = "ssh"
    daemon: str = "offpathd"  # a path, or a name that the device's shell finds
    arguments: str = ""  # further arguments of offpathd
    proxies: int | None = None
    spin_us: int | None = None


def daemon_line(device: RemoteDevice, options: StartOptions) -> str:
    """The command line for the device's shell."""
    # The daemon accepts code of this job only: the key is made for the job, and the daemon ends with it.
    words = [options.daemon, "--listen", device.address, "--log-level", "warn"]
    words += ["--allow-kernels", "/", "--allow-images"]
    if options.proxies is not None:
        words += ["--proxies", str(options.proxies)]
    if options.spin_us is not None:
        words += ["--spin-us", str(options.spin_us)]
    return shlex.join([*words, *shlex.split(options.arguments)])


def agent_command(device: RemoteDevice, options: StartOptions) -> list[str]:
    daemon = daemon_line(device, options)
    if "--dir" not in shlex.split(options.arguments):
        # The daemon serves a socket there, for MPI calls of target regions.
        daemon += ' --dir "$directory"'
    script = _SCRIPT.replace("{daemon}", daemon)
    return [*_impatient(shlex.split(options.agent)), device.host, shlex.join(["sh", "-c", script])]


def _impatient(agent: list[str]) -> list[str]:
    """Adds a connection timeout to ssh, unless the user has set one. By default ssh takes minutes to give up
    on a machine that does not answer."""
    if Path(agent[0]).name != "ssh" or any("connecttimeout" in word.lower() for word in agent):
        return agent
    return [agent[0], "-o", f"ConnectTimeout={_CONNECT_SECONDS}", *agent[1:]]


class RemoteDaemons:
    """A context manager. The daemons are ready inside it, and gone after it."""

    def __init__(self, devices: list[RemoteDevice], options: StartOptions, key_file: Path):
        if not options.agent.split() or not options.daemon:
            raise OffpathError(
                "no agent or no daemon to start devices with",
                "use --agent ssh and --device-daemon offpathd, or leave them out",
            )
        # Several nodes may share one device.
        self._devices = list({device.address: device for device in devices}.values())
        self._options, self._key_file = options, key_file
        self._running: list[tuple[RemoteDevice, subprocess.Popen[bytes], IO[bytes]]] = []

    def __enter__(self) -> "RemoteDaemons":
        key = secrets.token_hex(32).encode()
        with open(os.open(self._key_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(key)
        try:
            for device in self._devices:
                self._start(device, key)
            deadline = time.monotonic() + _READY_SECONDS
            problems = [self._problem(*running, deadline) for running in self._running]
            if any(problems):
                raise OffpathError("\n".join(filter(None, problems)))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        for _device, process, _errors in self._running:
            with contextlib.suppress(BrokenPipeError):
                _pipe(process.stdin).close()
        deadline = time.monotonic() + _STOP_SECONDS
        for device, process, errors in self._running:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                console.warn(f"the device {device.address} did not stop in time")
                process.kill()
                process.wait()
            for line in _said(errors):
                console.warn(f"device {device.address}: {line}")
            errors.close()
        self._running.clear()

    def _start(self, device: RemoteDevice, key: bytes) -> None:
        command = agent_command(device, self._options)
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the daemon runs
        try:
            # The process gets a session of its own, so that Ctrl-C ends the job first, and then its devices.
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
            )
        except OSError as error:
            raise OffpathError(
                f"the agent {command[0]!r} cannot be run: {error.strerror}", "name another one with --agent"
            ) from error
        self._running.append((device, process, errors))
        # If the process has ended already, waiting for it tells why.
        with contextlib.suppress(BrokenPipeError):
            _pipe(process.stdin).write(key + b"\n")
            _pipe(process.stdin).flush()

    def _problem(
        self, device: RemoteDevice, process: subprocess.Popen[bytes], errors: IO[bytes], deadline: float
    ) -> str | None:
        """Waits until the daemon is ready. If it does not become ready, returns what is wrong."""
        answer = _pipe(process.stdout)
        readable, _, _ = select.select([answer], [], [], max(0.0, deadline - time.monotonic()))
        if readable and os.read(answer.fileno(), 1) == b"1":
            return None
        words = "".join("\n  " + line for line in _said(errors))
        os.ftruncate(errors.fileno(), 0)
        what = "did not start" if readable else f"was not ready after {_READY_SECONDS:g} s"
        return (
            f"the device {device.address} {what} (by"
            f" {self._options.agent}){'; it said:' if words else ''}{words}"
        )


def _pipe(end: IO[bytes] | None) -> IO[bytes]:
    """Returns an end of a pipe, which exists because `_start` asked for it."""
    assert end is not None
    return end


def _said(errors: IO[bytes]) -> list[str]:
    errors.seek(0)
    return errors.read().decode(errors="replace").strip().splitlines()[-8:]
