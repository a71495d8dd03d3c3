"""Starts offpathd for one job on devices with operating systems of their own, and ends it with the job.

The launch agent runs a small shell script on the device. The agent is ssh, or any command that is called like
it: AGENT HOST COMMAND. The script reads the key of the job from its standard input and hands it to offpathd
through a pipe. So no command line, variable or file on the device contains the key. The script ends the
daemon when the connection ends, for whatever reason.

A daemon that ends before the job does is started again, with the same key. The ranks that it served have lost
it, but the next ones that attach, for instance of the next program of a script, find a daemon.
"""

import contextlib
import os
import select
import shlex
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from offpath import console
from offpath.codes import Code
from offpath.devices import RemoteDevice
from offpath.errors import OffpathError

_READY_SECONDS = 30.0
_CONNECT_SECONDS = 5
_STOP_SECONDS = 5.0
_WATCH_SECONDS = 0.2  # between two looks at the daemons
# A daemon that has ended so often within so many seconds of its start is not started again.
_SHORT_LIVES = 3
_SHORT_LIFE_S = 5.0
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
    if encrypt := os.environ.get("OFFPATH_ENCRYPT"):
        daemon = f"OFFPATH_ENCRYPT={shlex.quote(encrypt)} {daemon}"
    script = _SCRIPT.replace("{daemon}", daemon)
    return [*_impatient(shlex.split(options.agent)), device.host, shlex.join(["sh", "-c", script])]


def _impatient(agent: list[str]) -> list[str]:
    """Adds a connection timeout to ssh, unless the user has set one. By default ssh takes minutes to give up
    on a machine that does not answer."""
    if Path(agent[0]).name != "ssh" or any("connecttimeout" in word.lower() for word in agent):
        return agent
    return [agent[0], "-o", f"ConnectTimeout={_CONNECT_SECONDS}", *agent[1:]]


@dataclass
class _Started:
    """A daemon that was started. Its process here is the agent's."""

    device: RemoteDevice
    process: subprocess.Popen[bytes]
    errors: IO[bytes]
    since: float
    short_lives: int = 0  # of daemons of this device, one after the other
    given_up: bool = False


class RemoteDaemons:
    """A context manager. The daemons are ready inside it, and gone after it. A thread watches them."""

    def __init__(self, devices: list[RemoteDevice], options: StartOptions, key_file: Path):
        if not options.agent.split() or not options.daemon:
            raise OffpathError(
                Code.DEVICES,
                "no agent or no daemon to start devices with",
                "use --agent ssh and --device-daemon offpathd, or leave them out",
            )
        # Several nodes may share one device.
        self._devices = list({device.address: device for device in devices}.values())
        self._options, self._key_file = options, key_file
        self._running: list[_Started] = []
        self._key = b""
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._watch_all, daemon=True)

    def __enter__(self) -> "RemoteDaemons":
        self._key = os.urandom(32).hex().encode()
        with open(os.open(self._key_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(self._key)
        try:
            for device in self._devices:
                self._running.append(self._start(device))
            deadline = time.monotonic() + _READY_SECONDS
            problems = [self._problem(running, deadline) for running in self._running]
            if any(problems):
                raise OffpathError(Code.DAEMON, "\n".join(filter(None, problems)))
            self._watch.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        self._over.set()
        if self._watch.is_alive():
            self._watch.join()
        for running in self._running:
            with contextlib.suppress(BrokenPipeError):
                _pipe(running.process.stdin).close()
        deadline = time.monotonic() + _STOP_SECONDS
        for running in self._running:
            try:
                running.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                console.warn(Code.DAEMON, f"the device {running.device.address} did not stop in time")
                running.process.kill()
                running.process.wait()
            for line in _said(running.errors):
                console.warn(Code.DAEMON, f"device {running.device.address}: {line}")
            running.errors.close()
        self._running.clear()

    def _watch_all(self) -> None:
        while not self._over.wait(_WATCH_SECONDS):
            for i, running in enumerate(self._running):
                if not running.given_up and running.process.poll() is not None:
                    self._running[i] = self._start_again(running)

    def _start_again(self, ended: _Started) -> _Started:
        """Starts the daemon of a device again. Says so in one line, and what it has said before its end."""
        address = ended.device.address
        words = "".join("\n  " + line for line in _said(ended.errors))
        os.ftruncate(ended.errors.fileno(), 0)
        short = time.monotonic() - ended.since < _SHORT_LIFE_S
        ended.short_lives = ended.short_lives + 1 if short else 0
        if ended.short_lives >= _SHORT_LIVES:
            ended.given_up = True
            console.warn(
                Code.DAEMON, f"the daemon of the device {address} has ended again; it is given up{words}"
            )
            return ended
        try:
            again = self._start(ended.device)
        except OffpathError as error:
            ended.given_up = True
            console.warn(Code.DAEMON, f"the daemon of the device {address} has ended: {error}")
            return ended
        again.short_lives = ended.short_lives
        ended.errors.close()
        problem = self._problem(again, time.monotonic() + _READY_SECONDS)
        if problem is None:
            console.warn(
                Code.DAEMON, f"the daemon of the device {address} has ended; a new one serves{words}"
            )
        elif not self._over.is_set():
            console.warn(Code.DAEMON, problem)
        return again

    def _start(self, device: RemoteDevice) -> _Started:
        command = agent_command(device, self._options)
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the daemon runs
        try:
            # The process gets a session of its own, so that Ctrl-C ends the job first, and then its devices.
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
            )
        except OSError as error:
            raise OffpathError(
                Code.NOT_INSTALLED,
                f"the agent {command[0]!r} cannot be run: {error.strerror}",
                "name another one with --agent",
            ) from error
        # If the process has ended already, waiting for it tells why.
        with contextlib.suppress(BrokenPipeError):
            _pipe(process.stdin).write(self._key + b"\n")
            _pipe(process.stdin).flush()
        return _Started(device, process, errors, time.monotonic())

    def _problem(self, started: _Started, deadline: float) -> str | None:
        """Waits until the daemon is ready, or the context ends. If it does not become ready, returns what is
        wrong."""
        answer = _pipe(started.process.stdout)
        readable = False
        while not readable and time.monotonic() < deadline and not self._over.is_set():
            readable = bool(select.select([answer], [], [], _WATCH_SECONDS)[0])
        if readable and os.read(answer.fileno(), 1) == b"1":
            return None
        words = "".join("\n  " + line for line in _said(started.errors))
        os.ftruncate(started.errors.fileno(), 0)
        what = "did not start" if readable else f"was not ready after {_READY_SECONDS:g} s"
        return (
            f"the device {started.device.address} {what} (by"
            f" {self._options.agent}){'; it said:' if words else ''}{words}"
        )


def _pipe(end: IO[bytes] | None) -> IO[bytes]:
    """Returns an end of a pipe, which exists because `_start` asked for it."""
    assert end is not None
    return end


def _said(errors: IO[bytes]) -> list[str]:
    errors.seek(0)
    return errors.read().decode(errors="replace").strip().splitlines()[-8:]
