"""One offpathd for each node, on the node's device cores. It starts before the ranks and stops after them.

Local attach: it runs on the node and serves a socket in the session directory. Remote attach: it runs on the
device's own machine, listens on the host-device link, and gets the key of the job through a pipe.
"""

import os
import secrets
import select
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from offpath import logs
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.lab import network
from offpath.lab.cgroup import DeviceQuota
from offpath.lab.node import Node

READY_SECONDS = 30.0
STOP_SECONDS = 5.0


@dataclass(frozen=True)
class DeviceOptions:
    daemon: list[str]  # the command line of offpathd
    proxies: int | None = None
    spin_us: int | None = None
    log_level: str = "warn"


class RemoteAttach:
    """How the ranks of one job find devices on machines of their own, and authenticate to them. The files end
    with the job."""

    def __init__(self, nodes: int, session: Path):
        self.key = secrets.token_hex(32).encode()
        self.key_file = session / "key"
        self.devices_file = session / "devices"
        with open(os.open(self.key_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(self.key)
        self.devices_file.write_text(network.devices_file(nodes))

    def variables(self) -> dict[str, str]:
        return {
            "OFFPATH_DEVICES": f"@{self.devices_file}",
            "OFFPATH_KEY_FILE": str(self.key_file),
            "OFFPATH_HOST_DEVICES": network.PCIE_INTERFACE,
        }


def daemon_command(
    options: DeviceOptions, node: Node, session: Path, log: Path, ready_fd: int, key_fd: int | None = None
) -> list[str]:
    """With `key_fd`: for remote attach, on the device's own machine. Otherwise: for local attach,
    on the node."""
    machine = node if key_fd is None else node.device
    # A device with a machine of its own serves a socket, too, for MPI calls of target regions.
    command = [*options.daemon, "--name", machine.name, "--dir", str(session)]
    if key_fd is not None:
        command += [
            "--listen",
            f"{network.pcie_address(node.index, of_device=True)}:{network.DEVICE_PORT}",
            "--key-fd",
            str(key_fd),
        ]
        # The device accepts kernels of this job only, because the key is made for the job.
        command += ["--host-devices", network.PCIE_INTERFACE, "--allow-kernels", "/", "--allow-images"]
    command += [
        "--cpus",
        ",".join(map(str, node.placement.device)),
        "--log-level",
        options.log_level,
        "--log-file",
        str(log),
        "--ready-fd",
        str(ready_fd),
    ]
    if options.proxies is not None:
        command += ["--proxies", str(options.proxies)]
    if options.spin_us is not None:
        command += ["--spin-us", str(options.spin_us)]
    if machine.holder is not None:
        command += ["--net-devices", network.INTERFACE]
    return machine.command(command, node.placement.device)


class Device:
    """A running offpathd. It has started, but may not be ready: `wait_ready` is called when all devices of a
    job have been started."""

    def __init__(
        self,
        options: DeviceOptions,
        node: Node,
        session: Path,
        environment: dict[str, str],
        quota: DeviceQuota | None,
        key: bytes | None = None,
    ):
        self.node = node
        self.log = session / f"{node.name}.log"
        self._ready, write = os.pipe()
        passed = [write]
        try:
            if key is not None:
                passed.append(_pipe_with(key))
            with open(session / f"{node.name}.err", "wb") as errors:
                self.process = subprocess.Popen(
                    daemon_command(options, node, session, self.log, *passed),
                    env=environment,
                    pass_fds=passed,
                    stdin=subprocess.DEVNULL,
                    stdout=errors,
                    stderr=errors,
                    # Not a session of its own, as that would be a scheduling group of its own: see mpi.py.
                    process_group=0,
                )
        finally:
            for descriptor in passed:
                os.close(descriptor)
        if quota is not None:
            quota.add(self.process.pid)

    def wait_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        readable, _, _ = select.select([self._ready], [], [], max(0.0, deadline - time.monotonic()))
        answer = os.read(self._ready, 1) if readable else None
        os.close(self._ready)
        if answer:
            return
        if answer is None:
            raise OffpathError(
                Code.DAEMON,
                f"the device of {self.node.name} was not ready after {READY_SECONDS:g} s{self.last_words()}",
            )
        try:
            code = f"ended with code {self.process.wait(5)}"
        except subprocess.TimeoutExpired:
            code = "closed its ready descriptor"
        raise OffpathError(
            Code.DAEMON, f"the device of {self.node.name} did not start: offpathd {code}{self.last_words()}"
        )

    def ended(self) -> str | None:
        """How offpathd ended, if it ended on its own."""
        code = self.process.poll()
        if code is None:
            return None
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        return f"the device of {self.node.name} {how} during the run{self.last_words()}"

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def cpu_seconds(self) -> float | None:
        """CPU time that the device has used so far."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def last_words(self) -> str:
        lines = logs.last_lines(self.log, self.log.with_suffix(".err"))
        return "; its last words:" + lines if lines else ""


def first_complaint(devices: list[Device]) -> str | None:
    """The log of the device that met the failure of a job first."""
    log = logs.first_to_complain(device.log for device in devices)
    device = next((device for device in devices if device.log == log), None)
    return (
        f"the device of {device.node.name} was the first to complain{device.last_words()}" if device else None
    )


def _pipe_with(key: bytes) -> int:
    """The read end of a pipe that contains only the key. So the key never appears in a command line, a
    variable or a file."""
    read, write = os.pipe()
    with open(write, "wb") as file:
        file.write(key)
    return read
