"""One run of miniMD, and its outcome.

A study, and the source that supplies its runs (sources.py), share only these two types.
"""

from dataclasses import asdict, dataclass, field, replace

from offpath.codes import Code
from offpath.errors import OffpathError

(
    HOSTS,
    DEVICES,
    ALL,
    PAPER,
    BALANCED,
    RUNTIME_PAPER,
    RUNTIME_BALANCED,
    TUNNEL,
    SPLIT,
    OFFLOADED,
    BLOCKING,
    OVERLAPPED,
    POLLED,
    THREADED,
    HALO,
    TOGETHER,
) = SCHEMES = (
    "hosts",
    "devices",
    "all",
    "paper",
    "balanced",
    "paper-runtime",
    "balanced-runtime",
    "tunnel",
    "split-boundary",
    "offloaded",
    "halo-blocking",
    "halo-overlapped",
    "halo-polled",
    "halo-threaded",
    "halo-offloaded",
    "one-node",
)
LABELS = {
    HOSTS: "hosts only",
    DEVICES: "devices only",
    ALL: "devices as more hosts",
    PAPER: "off-path, as published",
    BALANCED: "off-path, balanced",
    RUNTIME_PAPER: "off-path, as published, over the runtime",
    RUNTIME_BALANCED: "off-path, balanced, over the runtime",
    TUNNEL: "ghosts by the devices (tunnel)",
    SPLIT: "boundary forces on the devices",
    OFFLOADED: "hosts, MPI offloaded",
    BLOCKING: "ghosts by MPI, blocking",
    OVERLAPPED: "ghosts by MPI, overlapped",
    POLLED: "ghosts by MPI, overlapped and polled",
    THREADED: "ghosts by MPI, overlapped, progress thread",
    HALO: "ghosts by the devices (group schedules)",
    TOGETHER: "all ranks on one node",
}
# The schemes whose devices compute forces, so that the devices' slowness and threads matter.
USES_DEVICES = (
    DEVICES,
    PAPER,
    BALANCED,
    RUNTIME_PAPER,
    RUNTIME_BALANCED,
    SPLIT,
)


@dataclass(frozen=True)
class Case:
    """A run of `steps` steps with Lennard-Jones forces and half lists. Everything else is miniMD's default.

    `scheme` is one of SCHEMES and decides what hosts and devices do. Each of the `nodes` has `ranks_per_node`
    host ranks and, if the scheme has devices, one device. `atoms` is the total number. `device_slowness` is
    the time of a device for forces, relative to a host core. `intensity` is the number of evaluations of each
    pair's force.
    """

    scheme: str
    atoms: int
    nodes: int = 1
    ranks_per_node: int = 1
    interval: int = 1
    steps: int = 20
    skin: float = 0.3
    thermo_every: int = 0  # 0: first and last step
    threads: int = 1
    device_threads: int = 1
    device_slowness: int = 1
    intensity: int = 1
    precision: str = "double"
    wide: bool = False  # if only hosts, or only devices, compute, they may also use the cores of the others

    @property
    def cells(self) -> int:
        return cells_of(self.atoms)

    @property
    def rebuilds(self) -> int:
        return self.steps // self.interval

    @property
    def name(self) -> str:
        nodes = f"{self.nodes} node{'s' if self.nodes > 1 else ''}"
        return f"{self.scheme}, {nodes}, {self.atoms} atoms, every {self.interval}"

    def parameters(self) -> dict:
        return asdict(self)

    def of(self, scheme: str) -> "Case":
        """The same system under another scheme. If that scheme has no devices, their settings become 1, so
        that the case is run only once."""
        other = replace(self, scheme=scheme)
        return other if scheme in USES_DEVICES else replace(other, device_threads=1, device_slowness=1)


@dataclass(frozen=True)
class Outcome:
    """Seconds as `minimd --json` reports them: the total of the slowest host, and means over the ranks that
    simulate for the rest."""

    total_s: float
    force_s: float
    neigh_s: float
    comm_s: float
    other_s: float
    thermo: list[dict] = field(default_factory=list)  # {"step", "t", "u", "p"}, per atom
    # Seconds of a rank on a core outside of calls that communicate. None: not known.
    computing_s: float | None = None
    # The parts of force_s, neigh_s and comm_s that a rank was on a core. None: not known.
    on_core: tuple[float, float, float] | None = None
    # Bytes through the links between hosts and devices, both ways, of all nodes. None: not known.
    device_bytes: float | None = None


@dataclass(frozen=True)
class Cores:
    """The number of cores of all host ranks together, and of all devices together."""

    hosts: int
    devices: int


def cells_of(atoms: int) -> int:
    """Unit cells in each dimension of a cube with 4 atoms in each cell."""
    cells = round((max(atoms, 0) / 4) ** (1 / 3))
    if atoms < 1 or 4 * cells**3 != atoms:
        near = sorted({4 * max(1, cells + step) ** 3 for step in (-1, 0, 1)})
        raise OffpathError(
            Code.OPTION,
            f"{atoms} atoms do not fill a cube of cells with 4 atoms each",
            "near it do: " + ", ".join(map(str, near)),
        )
    return cells
