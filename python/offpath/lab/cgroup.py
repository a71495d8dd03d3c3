"""Throttles a device to a share of one core, with the cpu controller of cgroups, version 1 or 2.

Groups are named offpath-lab-OWNER-NODE. They are removed when the lab ends. `offpath lab clean` removes those
whose owner is gone.
"""

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path

from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.lab import owner

PERIOD_US = 10_000  # short, so that a throttled device is slow and does not stop for 100 ms at a time
PREFIX = "offpath-lab-"


@dataclass(frozen=True)
class Hierarchy:
    root: Path
    version: int
    own: str  # this process's group, relative to the root

    def candidates(self) -> list[Path]:
        """The groups in which a child may be made, nearest first. Version 2 often allows that
        only further up."""
        group = self.root / self.own.strip("/")
        return [group, *[parent for parent in group.parents if parent.is_relative_to(self.root)]]


def find_hierarchies(mounts: str, membership: str) -> list[Hierarchy]:
    """The hierarchies that may have the cpu controller, according to the text of /proc/self/mounts and
    /proc/self/cgroup."""
    own = {}
    for line in membership.splitlines():
        _, controllers, group = line.split(":", 2)
        own[controllers] = group
    found = []
    for line in mounts.splitlines():
        _, where, kind, options = line.split()[:4]
        if kind == "cgroup" and "cpu" in options.split(","):
            group = next((g for c, g in own.items() if "cpu" in c.split(",")), "/")
            found.append(Hierarchy(Path(where), 1, group))
        elif kind == "cgroup2":
            found.append(Hierarchy(Path(where), 2, own.get("", "/")))
    return sorted(found, key=lambda hierarchy: hierarchy.version)


def _here() -> list[Hierarchy]:
    return find_hierarchies(Path("/proc/self/mounts").read_text(), Path("/proc/self/cgroup").read_text())


class DeviceQuota:
    """The group of one device. `add` moves a process with all its threads into it."""

    def __init__(self, owner_mark: str, node: str, fraction: float):
        reasons = []
        for hierarchy in _here():
            for parent in hierarchy.candidates():
                path = parent / f"{PREFIX}{owner_mark}-{node}"
                try:
                    _make(path, hierarchy.version, fraction)
                except OSError as error:
                    reasons.append(f"{parent}: {error.strerror}")
                    continue
                self.path: Path = path
                return
        raise OffpathError(
            Code.NO_LAB,
            "the device cannot be throttled: no cgroup with a cpu controller is writable here"
            + (f" ({'; '.join(reasons)})" if reasons else " (none is mounted)"),
            "run as root, have a cgroup delegated to you (systemd-run --user --scope -p Delegate=yes ...), or"
            " leave --device-quota out",
        )

    def add(self, pid: int) -> None:
        (self.path / "cgroup.procs").write_text(str(pid))

    def throttled_periods(self) -> int:
        """How many times the quota has stopped the device."""
        for line in (self.path / "cpu.stat").read_text().splitlines():
            if line.startswith("nr_throttled "):
                return int(line.split()[1])
        return 0

    def remove(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.path.rmdir()


def _make(path: Path, version: int, fraction: float) -> None:
    path.mkdir()
    quota = max(1000, round(PERIOD_US * fraction))
    try:
        if version == 1:
            (path / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (path / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            if not (path / "cpu.max").exists():
                (path.parent / "cgroup.subtree_control").write_text("+cpu")
            (path / "cpu.max").write_text(f"{quota} {PERIOD_US}")
    except OSError:
        path.rmdir()
        raise


def remove_leftovers() -> list[str]:
    """Removes the groups of labs whose command is gone, and returns their paths."""
    removed = []
    for hierarchy in _here():
        for parent in hierarchy.candidates():
            for path in parent.glob(PREFIX + "*"):
                match = re.fullmatch(re.escape(PREFIX) + r"(\d+-\d+)-.+", path.name)
                if match and not owner.is_alive(match[1]):
                    try:
                        path.rmdir()
                        removed.append(str(path))
                    except OSError:
                        pass  # processes are still in it, or it belongs to another user
    return removed
