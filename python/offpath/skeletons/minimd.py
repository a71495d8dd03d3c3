"""The skeleton of minimd with half lists: ghosts travel to neighbours in each step, and their forces back.
Every 20 steps, atoms migrate and lists are rebuilt (apps/minimd).

Atoms are taken to be spread evenly, so sizes of messages are estimates."""

import argparse
import itertools
import math

from offpath.skeletons.command_line import Parser, within
from offpath.skeletons.kernels import Kernels
from offpath.skeletons.machine import Machine
from offpath.skeletons.profile_writer import RankWriter, Request

DENSITY, CUTOFF, SKIN, REBUILD_EVERY, THERMO_EVERY = 0.8442, 2.5, 0.3, 20, 100
MIGRATION, GHOST_COUNTS, GHOSTS, UPDATE, REVERSE = 100, 120, 121, 122, 123  # tags
TRAVELLER = 64  # bytes of an atom that migrates
# The share of the layer of this thickness that crosses a face between two rebuilds: what a run showed.
CROSSING = 0.04


def parse(words: list[str]) -> argparse.Namespace:
    parser = Parser("minimd")
    parser.add_argument("-s", "--size", type=within(1, 10**4), default=32)
    parser.add_argument("-n", "--nsteps", type=within(0, 10**9), default=100)
    parser.add_argument("--halo", choices=("blocking", "overlapped"), default="overlapped")
    return parser.parse_args(words)


def grid_of(ranks: int) -> tuple[int, int, int]:
    """The cut of a cube with the least surface; of equal ones, the first."""
    grids = [
        (x, y, ranks // x // y)
        for x in range(1, ranks + 1)
        if ranks % x == 0
        for y in range(1, ranks // x + 1)
        if ranks // x % y == 0
    ]
    return min(grids, key=lambda g: 1 / (g[0] * g[1]) + 1 / (g[0] * g[2]) + 1 / (g[1] * g[2]))


class Subdomain:
    """A rank's part: its sides, and for each other rank how many ghosts go there and come from there."""

    def __init__(self, size: int, ranks: int, rank: int) -> None:
        self.grid = grid_of(ranks)
        self.place = (
            rank // (self.grid[1] * self.grid[2]),
            rank // self.grid[2] % self.grid[1],
            rank % self.grid[2],
        )
        box = size * (4 / DENSITY) ** (1 / 3)
        self.side = [box / parts for parts in self.grid]
        self.atoms = 4 * size**3 / ranks
        self.reach = CUTOFF + SKIN
        self.sent: dict[int, int] = {}
        self.received: dict[int, int] = {}
        self.images: dict[int, list[int]] = {}  # by peer: out, in
        need = [math.ceil(self.reach / side) for side in self.side]
        self.ghosts = 0
        for offset in itertools.product(*(range(most + 1) for most in need)):
            if offset == (0, 0, 0):
                continue
            atoms = round(DENSITY * self._volume(offset))
            to, source = self._rank_at(offset, -1), self._rank_at(offset, 1)
            self.ghosts += atoms
            for peer, way, counts in ((to, 0, self.sent), (source, 1, self.received)):
                if peer != rank:
                    self.images.setdefault(peer, [0, 0])[way] += 1
                    counts[peer] = counts.get(peer, 0) + atoms

    def _volume(self, offset: tuple[int, ...]) -> float:
        """Of the owner's part that is within reach of the receiver, which is `offset` places below."""
        depths = [self.reach - (at - 1) * side for at, side in zip(offset, self.side, strict=True) if at > 0]
        round_corner = {1: 1.0, 2: math.pi / 4, 3: math.pi / 6}[len(depths)]
        volume = round_corner
        for at, side in zip(offset, self.side, strict=True):
            volume *= side if at == 0 else max(0.0, min(side, self.reach - (at - 1) * side))
        return volume

    def _rank_at(self, offset: tuple[int, ...], sign: int) -> int:
        at = [(p + sign * o) % parts for p, o, parts in zip(self.place, offset, self.grid, strict=True)]
        return (at[0] * self.grid[1] + at[1]) * self.grid[2] + at[2]

    def neighbour(self, dim: int, step: int) -> int:
        return self._rank_at(tuple(step if d == dim else 0 for d in range(3)), 1)

    def with_ghosts(self) -> float:
        """The share of the pairs that need ghosts: of each side, half of the layer within reach."""
        return 1 - math.prod(1 - 0.5 * min(1.0, self.reach / side) for side in self.side)


class Writer:
    def __init__(self, options: argparse.Namespace, ranks: int, rank: int, kernels: Kernels) -> None:
        self.rank = RankWriter(rank, ranks)
        self.part = Subdomain(options.size, ranks, rank)
        self.options, self.kernels = options, kernels
        atoms = self.part.atoms
        self.force_s = atoms * kernels["minimd.force_s"]
        self.half_step_s = atoms * kernels["minimd.integrate_s"] / 2
        self.neighbour_s = atoms * kernels["minimd.neighbour_s"]

    def messages(self, tag: int, homeward: bool, receives: bool = True) -> list[Request]:
        out, come = self.part.sent, self.part.received
        if homeward:
            out, come = come, out
        requests = []
        for name, counts in (("Irecv", come if receives else {}), ("Isend", out)):
            for peer in self.part.images:
                if counts.get(peer, 0) > 0:
                    if name == "Isend":
                        self.rank.compute(counts[peer] * self.kernels["minimd.ghost_s"])
                    requests.append(self.rank.post(name, comm=0, peer=peer, tag=tag, bytes=24 * counts[peer]))
        return requests

    def exchange(self, tag: int, homeward: bool, meanwhile_s: float) -> None:
        requests = self.messages(tag, homeward)
        if self.options.halo == "overlapped":
            self.rank.compute(meanwhile_s)
        self.rank.complete(requests, "Waitall")
        if self.options.halo == "blocking":
            self.rank.compute(meanwhile_s)
        arrived = sum((self.part.sent if homeward else self.part.received).values())
        self.rank.compute(arrived * self.kernels["minimd.ghost_s"])

    def forces(self, fresh: bool) -> None:
        """The pairs without ghosts are computed in two halves, one beside each exchange."""
        interior = self.force_s * (1 - self.part.with_ghosts()) / 2
        if fresh:
            self.rank.compute(interior)
        else:
            self.exchange(UPDATE, False, interior)
        self.rank.compute(self.force_s * self.part.with_ghosts())
        self.exchange(REVERSE, True, interior)

    def rebuild(self) -> None:
        for dim in range(3):
            if self.part.grid[dim] == 1:
                continue
            face = math.prod(side for d, side in enumerate(self.part.side) if d != dim)
            size = TRAVELLER * round(DENSITY * face * CROSSING)
            requests = []
            for way, step in enumerate((-1, 1)):
                requests.append(
                    self.rank.post("Irecv", comm=0, peer=self.part.neighbour(dim, -step), tag=MIGRATION + way,
                                   bytes=size)
                )  # fmt: skip
                requests.append(
                    self.rank.post("Isend", comm=0, peer=self.part.neighbour(dim, step), tag=MIGRATION + way,
                                   bytes=size)
                )  # fmt: skip
            self.rank.complete(requests, "Waitall")
        counts = []
        for peer, (out, come) in self.part.images.items():
            counts.append(self.rank.post("Irecv", comm=0, peer=peer, tag=GHOST_COUNTS, bytes=4 * come))
            counts.append(self.rank.post("Isend", comm=0, peer=peer, tag=GHOST_COUNTS, bytes=4 * out))
        sends = self.messages(GHOSTS, False, receives=False)
        self.rank.compute(self.neighbour_s * (1 - self.part.with_ghosts()))
        self.rank.complete(counts, "Waitall")
        receives = [
            self.rank.post("Irecv", comm=0, peer=peer, tag=GHOSTS, bytes=24 * atoms)
            for peer, atoms in self.part.received.items()
            if atoms > 0
        ]
        self.rank.complete(receives + sends, "Waitall")
        self.rank.compute(self.neighbour_s * self.part.with_ghosts())

    def thermo(self) -> None:
        self.rank.call("Allreduce", comm=0, bytes=32)
        self.rank.call("Allreduce", comm=0, bytes=12)

    def steps(self, count: int) -> None:
        """Steps without a rebuild."""
        if count > 0:
            with self.rank.repeat(count):
                self.rank.compute(2 * self.half_step_s)
                self.forces(fresh=False)


def write_rank(options: argparse.Namespace, machine: Machine, rank: int, kernels: Kernels) -> RankWriter:
    writer = Writer(options, machine.ranks, rank, kernels)
    writer.rebuild()
    writer.forces(fresh=True)
    writer.thermo()
    writer.rank.call("Barrier", comm=0)
    ordinary = 0
    for step in range(1, options.nsteps + 1):
        rebuilds, reports = step % REBUILD_EVERY == 0, step % THERMO_EVERY == 0 or step == options.nsteps
        if not rebuilds:
            ordinary += 1
        if rebuilds or reports:
            writer.steps(ordinary)
            ordinary = 0
        if rebuilds:
            writer.rank.compute(2 * writer.half_step_s)
            writer.rebuild()
            writer.forces(fresh=True)
        if reports:
            writer.thermo()
    writer.rank.call("Barrier", comm=0)
    return writer.rank
