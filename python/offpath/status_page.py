"""What the daemons of this machine show while they work: pages of memory that offpathd keeps for readers of
the same user (src/proxy/status_page.h). Reading one asks the daemon for nothing."""

import mmap
import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path

_LINK = "/memfd:offpath-status"
_MAGIC = b"OFPTATS1"
_FIRST_PART = 4096
_PART_BYTES = 4096
_SHOWN_SESSIONS = 60
_DAEMON = struct.Struct("8sQQQ64s")
_PROXY = struct.Struct("QQqQQQQQQQQQQQQQ")
_PROXY_BYTES = 256
_SESSION = struct.Struct("40sQQQ")


@dataclass(frozen=True)
class Rank:
    name: str
    started: int  # operations since it attached
    outstanding: int


@dataclass(frozen=True)
class Proxy:
    ranks: list[Rank]
    cpu: int | None  # None: any
    sessions: int
    outstanding: int  # operations of its ranks
    schedules_run: int
    schedules_failed: int
    bytes_sent: int
    bytes_received: int
    bytes_copied: int
    bytes_reduced: int
    written_ns: int
    cpu_ns: int
    # Of the large payloads received, by the copies that proxies made on the way.
    bytes_direct: int
    bytes_copied_once: int
    bytes_copied_more_often: int


@dataclass(frozen=True)
class Daemon:
    node: str
    process: int  # as this process sees it
    uptime_s: float
    proxies: list[Proxy]


class StatusPage:
    """One daemon's page. It stays readable, and unchanged, after the daemon has ended."""

    def __init__(self, process: int, path: Path):
        self.process = process
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._memory = mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)
        finally:
            os.close(descriptor)
        if len(self._memory) < _FIRST_PART or self._memory[:8] != _MAGIC:
            raise ValueError(f"{path} is no status page of this version")

    def read(self) -> Daemon:
        _, proxies, _, started_ns, node = _DAEMON.unpack_from(self._memory)
        return Daemon(
            node=_text(node),
            process=self.process,
            uptime_s=(time.monotonic_ns() - started_ns) / 1e9,
            proxies=[self._proxy(_FIRST_PART + index * _PART_BYTES) for index in range(proxies)],
        )

    def _proxy(self, offset: int) -> Proxy:
        # A proxy writes for less than a microsecond, so a changing part is soon whole again.
        for _ in range(1000):
            part = self._memory[offset : offset + _PART_BYTES]
            (before,) = struct.unpack_from("Q", part)
            (after,) = struct.unpack_from("Q", self._memory, offset)
            if before == after and before % 2 == 0:
                break
        _, _, cpu, sessions, *counters = _PROXY.unpack_from(part)
        ranks = []
        for index in range(min(sessions, _SHOWN_SESSIONS)):
            name, started, waiting, _ = _SESSION.unpack_from(part, _PROXY_BYTES + index * _SESSION.size)
            ranks.append(Rank(_text(name), started, waiting))
        return Proxy(ranks, cpu if cpu >= 0 else None, sessions, *counters)


def _text(padded: bytes) -> str:
    return padded.rstrip(b"\0").decode(errors="replace")


def find() -> list[StatusPage]:
    """The pages of all daemons that this user may look at, by process."""
    pages = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if b"offpathd" not in (entry / "cmdline").read_bytes().split(b"\0", 1)[0]:
                continue
            for descriptor in (entry / "fd").iterdir():
                if os.readlink(descriptor).startswith(_LINK):
                    pages.append(StatusPage(int(entry.name), descriptor))
                    break
        except (OSError, ValueError):
            continue  # it has ended, or belongs to somebody else
    return sorted(pages, key=lambda page: page.process)


def alive(page: StatusPage) -> bool:
    return Path(f"/proc/{page.process}").exists()
