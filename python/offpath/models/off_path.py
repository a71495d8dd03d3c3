"""The off-path algorithm of miniMD: what a step takes if devices compute forces while hosts rebuild.

    t_off = t_total - {t_force + t_neigh + t_comm - max(t_neigh + t_comm, t_force_dev + t_comm_dev + t_moved)}
                      * rebuilds

Source: "'Smarter' NICs for faster molecular dynamics" (IPDPS 2022), Eq. 3, without `t_moved`. That is the
transfer of positions, forces and lists between host and device, which the paper leaves out.

Range: one rank a node, each with cores of its own. A rebuild step overlaps nothing else. Wake-ups and the
cores' influence on each other are not in it.
"""

from dataclasses import dataclass

from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.models import checks

# Integers for each atom in the pair lists and in the messages that say where atoms and ghosts went. They were
# counted on host-device links, with 2 hosts of 16000 atoms each.
LIST_INTEGERS = 10


@dataclass(frozen=True)
class StepTimes:
    """Seconds of one step that rebuilds: forces, neighbour lists, communication."""

    force: float
    neigh: float
    comm: float

    @property
    def total(self) -> float:
        return self.force + self.neigh + self.comm

    def scaled(self, factor: float) -> "StepTimes":
        return StepTimes(self.force * factor, self.neigh * factor, self.comm * factor)


def eq3(
    total_s: float, host: StepTimes, device: StepTimes, rebuilds: float, transfers_s: float = 0.0
) -> float:
    """The seconds of a run with the off-path algorithm. `total_s` is that of hosts alone, `rebuilds` the
    number of steps that rebuild, and `transfers_s` what a device moves in each of these (0: the paper's
    form)."""
    overlapped = max(host.neigh + host.comm, device.force + device.comm + transfers_s)
    return total_s - (host.total - overlapped) * rebuilds


def transfer_bytes(atoms: float, real: int) -> tuple[float, float, float]:
    """Bytes of positions, forces and lists of this many atoms. `real`: bytes of a number, 4 or 8."""
    return 3 * real * atoms, 3 * real * atoms, 4 * LIST_INTEGERS * atoms


@dataclass(frozen=True)
class Threads:
    """How a routine's time depends on the number of threads.

    A share `serial` of the work stays on one thread. With more than one thread all of it takes `penalty`
    times as much work: locks, atomic updates, or pairs that are computed twice.
    """

    serial: float = 0.0
    penalty: float = 1.0

    def __post_init__(self) -> None:
        checks.share("the serial share", self.serial)
        checks.number("the penalty of threads", self.penalty, 1.0)

    def factor(self, threads: int) -> float:
        """The time on `threads` threads, as a multiple of that on one."""
        checks.count("the number of threads", threads)
        if threads == 1:
            return 1.0
        return self.penalty * (self.serial + (1 - self.serial) / threads)

    @classmethod
    def from_speedup(cls, speedup: float, threads: int) -> "Threads":
        """A routine without serial work that is `speedup` times as fast on `threads` threads as on one."""
        checks.positive("the speed-up", speedup)
        if checks.count("the number of threads", threads) < 2 or speedup > threads:
            raise OffpathError(
                Code.OPTION,
                f"a speed-up of {speedup:g} on {threads} threads is out of range",
                "use at least 2 threads, and a speed-up of at most their number",
            )
        return cls(penalty=threads / speedup)


@dataclass(frozen=True)
class Machine:
    """Hosts and devices for OffPath: the penalty of threads in the force computation, and the time of one
    device thread as a multiple of that of one host thread."""

    slowness: float
    force: Threads = Threads()
    neigh: Threads = Threads()

    def __post_init__(self) -> None:
        checks.positive("the device's slowness", self.slowness)

    def host(self, one: StepTimes, threads: int) -> StepTimes:
        """A host's times on `threads` threads. Communication does not depend on them."""
        return StepTimes(
            one.force * self.force.factor(threads), one.neigh * self.neigh.factor(threads), one.comm
        )

    def device(self, one: StepTimes, threads: int, comm_slowness: float = 1.0) -> StepTimes:
        """A device's times for the same work. Its network is the host's, so its communication takes
        `comm_slowness` times as long as the host's."""
        of_host = self.host(one, threads)
        return StepTimes(
            of_host.force * self.slowness, of_host.neigh * self.slowness, one.comm * comm_slowness
        )


@dataclass(frozen=True)
class Prediction:
    """Seconds of a run."""

    host_s: float
    off_path_s: float  # Eq. 3
    extended_s: float  # with transfers

    @property
    def improvement_percent(self) -> float:
        """Eq. 2 of the paper, for Eq. 3."""
        return 100 * (self.host_s - self.off_path_s) / self.host_s

    @property
    def extended_improvement_percent(self) -> float:
        return 100 * (self.host_s - self.extended_s) / self.host_s


@dataclass(frozen=True)
class OffPath:
    """A program with the structure of miniMD. `one` has the times of a rebuild step on one host thread, and
    `other_s` is the rest of a step, on any number of threads. `atoms` is of one host."""

    one: StepTimes
    other_s: float = 0.0
    ordinary_comm_s: float = 0.0  # communication of a step without a rebuild
    atoms: float = 0.0
    real_bytes: int = 8

    def __post_init__(self) -> None:
        for name, value in (
            ("force", self.one.force), ("neigh", self.one.neigh), ("comm", self.one.comm),
            ("other", self.other_s), ("ordinary communication", self.ordinary_comm_s), ("atoms", self.atoms),
        ):  # fmt: skip
            checks.number(f"the time of {name}" if name != "atoms" else "the number of atoms", value)
        checks.positive("the time of a step", self.one.total)

    def predict(
        self,
        machine: Machine,
        host_threads: int,
        device_threads: int,
        steps: int,
        interval: int,
        bus_Bps: float | None = None,
    ) -> Prediction:
        """A run of `steps` steps with a rebuild in every `interval`. `bus_Bps` is the rate between host and
        device. None: it costs nothing."""
        checks.count("the number of steps", steps)
        checks.count("the interval", interval)
        host, device = machine.host(self.one, host_threads), machine.device(self.one, device_threads)
        rebuilds = steps / interval
        ordinary = (steps - rebuilds) * (host.force + self.ordinary_comm_s)
        total = rebuilds * host.total + ordinary + steps * self.other_s
        moved = 0.0
        if bus_Bps is not None:
            checks.positive("the rate between host and device", bus_Bps)
            positions, forces, lists = transfer_bytes(self.atoms, self.real_bytes)
            # Lists arrive during ordinary steps where there are any.
            moved = (positions + forces + (lists if interval == 1 else 0)) / bus_Bps
        return Prediction(
            total, eq3(total, host, device, rebuilds), eq3(total, host, device, rebuilds, moved)
        )

    def knee(self, machine: Machine, device_threads: int, most: int = 1024) -> int:
        """The largest number of host threads with which the device's forces stay hidden behind the host's
        rebuild: the knee of the curves in Fig. 14. 0 if they are not hidden even behind one thread's."""
        device = machine.device(self.one, device_threads)
        found = 0
        for threads in range(1, most + 1):
            host = machine.host(self.one, threads)
            if host.neigh + host.comm < device.force + device.comm:
                break
            found = threads
        return found
