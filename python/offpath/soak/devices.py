"""The daemons of a soak. Unlike those of other runs in the lab they outlive their jobs: one serves run after
run until a fault ends it. Then a successor is started in the same session directory."""

import contextlib
import os
import signal
import time
from pathlib import Path

from offpath.lab.cluster import Cluster
from offpath.lab.device import Device, RemoteAttach
from offpath.soak.growth import Life, Sample


class SoakDevices:
    """A context manager. It is used from one thread at a time; a fault has a thread of its own."""

    def __init__(self, cluster: Cluster, began: float):
        """`began`: when the soak did, by time.monotonic()."""
        self._cluster = cluster
        self._began = began
        self.session = cluster.room / "soak"
        self.session.mkdir(mode=0o700)
        self._remote = RemoteAttach(len(cluster.nodes), self.session) if cluster.spec.remote else None
        self._devices: list[Device] = []
        self._retired: list[Device] = []
        self.lives: list[Life] = []
        self._current: list[Life] = []

    def __enter__(self) -> "SoakDevices":
        self._devices = self._cluster.start_devices(self.session, self._remote)
        self._current = [self._life(device) for device in self._devices]
        return self

    def __exit__(self, *_) -> None:
        for device in self._devices + self._retired:
            with contextlib.suppress(ProcessLookupError):
                device.process.send_signal(signal.SIGCONT)
            device.stop()

    def seconds(self) -> float:
        """Since the soak began."""
        return time.monotonic() - self._began

    def attach(self) -> dict[str, str]:
        """The variables that tell ranks how to find their device."""
        return self._remote.variables() if self._remote else {"OFFPATH_DIR": str(self.session)}

    def victim(self, node: int) -> Device:
        return self._devices[node]

    def pids(self) -> set[int]:
        return {device.process.pid for device in self._devices}

    def logs(self) -> list[Path]:
        return [device.log for device in self._devices]

    def dead(self) -> list[int]:
        """The nodes whose daemons have ended."""
        return [i for i, device in enumerate(self._devices) if device.process.poll() is not None]

    def last_words(self, node: int) -> str:
        return self._devices[node].ended() or ""

    def revive(self) -> None:
        """Starts successors of the daemons that have ended."""
        started = []
        for node in self.dead():
            self._devices[node].stop()  # reaps it
            self._devices[node] = self._cluster.start_device(
                self._cluster.nodes[node], self.session, self._remote
            )
            self._current[node] = self._life(self._devices[node])
            started.append(node)
        for node in started:
            self._devices[node].wait_ready()

    def replace(self, node: int) -> None:
        """Starts a successor that takes the place of a node's daemon. The old one ends with its sessions."""
        successor = self._cluster.start_device(
            self._cluster.nodes[node], self.session, self._remote, replace=True
        )
        try:
            successor.wait_ready()
        except BaseException:
            successor.stop()
            raise
        self._retired.append(self._devices[node])
        self._devices[node] = successor
        self._current[node] = self._life(successor)

    def reap(self) -> None:
        """Reaps daemons that have been replaced and have ended."""
        self._retired = [device for device in self._retired if device.process.poll() is None]

    def sample(self, run: int) -> None:
        for device, life in zip(self._devices, self._current, strict=True):
            # A daemon that is just ending has no memory any more.
            with contextlib.suppress(OSError, KeyError):
                life.samples.append(_sample(device.process.pid, run, self.seconds()))

    def _life(self, device: Device) -> Life:
        self.lives.append(Life(device.node.name, device.process.pid))
        return self.lives[-1]


def _sample(pid: int, run: int, at_s: float) -> Sample:
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line
    )
    return Sample(
        run,
        # Without pages of files: the system drops pages of a program's code when it wants to, and reads them
        # again.
        sum(int(status[kind].split()[0]) for kind in ("RssAnon", "RssShmem", "VmSwap")) * 1024,
        len(os.listdir(f"/proc/{pid}/fd")),
        int(status["Threads"]),
        at_s,
    )
