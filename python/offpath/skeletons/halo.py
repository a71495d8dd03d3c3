"""The skeleton of halo: a stencil on a block for each rank, whose faces the ranks exchange in each step
(apps/halo)."""

import argparse
import math

from offpath.skeletons.command_line import Parser, within
from offpath.skeletons.kernels import Kernels
from offpath.skeletons.machine import Machine
from offpath.skeletons.profile_writer import NO_RANK, RankWriter

VARIANTS = ("mpi", "nonblocking")
STEPS_BEFORE = 2  # which are not timed


def parse(words: list[str]) -> argparse.Namespace:
    parser = Parser("halo")
    parser.add_argument("--dims", type=within(1, 3), default=2)
    parser.add_argument("--size", type=within(1, 2**40), default=256)
    parser.add_argument("--steps", type=within(1, 2**40), default=100)
    parser.add_argument("--periodic", action="store_true")
    parser.add_argument("--variant", choices=VARIANTS, default="mpi")
    options = parser.parse_args(words)
    if options.size**options.dims > 10**12:
        parser.error("--size: the domain has more than 10^12 cells")
    options.refuse = parser.refuse
    return options


def grid_of(extents: list[int], ranks: int) -> tuple[int, int, int] | None:
    """The cut whose largest block sends least; of equal ones, the first that cuts slow dimensions."""

    def surface(grid: tuple[int, int, int]) -> int:
        cells = 0
        for dim in range(3):
            if grid[dim] > 1:
                others = [-(-extents[other] // grid[other]) for other in range(3) if other != dim]
                cells += 2 * others[0] * others[1]
        return cells

    grids = [
        (a, b, ranks // a // b)
        for a in range(ranks, 0, -1)
        if ranks % a == 0
        for b in range(ranks // a, 0, -1)
        if ranks // a % b == 0
    ]
    fitting = [grid for grid in grids if all(parts <= n for parts, n in zip(grid, extents, strict=True))]
    return min(fitting, key=surface, default=None)


class Block:
    """A rank's cells, and its neighbours by dimension and side; None: there is none."""

    def __init__(self, options: argparse.Namespace, ranks: int, rank: int) -> None:
        extents = [options.size if dim >= 3 - options.dims else 1 for dim in range(3)]
        grid = grid_of(extents, ranks)
        if grid is None:
            raise options.refuse(f"--size {options.size}: the domain cannot be cut into {ranks} blocks")
        stride = (grid[1] * grid[2], grid[2], 1)
        self.n: list[int] = []
        self.neighbour: list[list[int | None]] = []
        for dim in range(3):
            parts, at = grid[dim], rank // stride[dim] % grid[dim]
            self.n.append(extents[dim] * (at + 1) // parts - extents[dim] * at // parts)
            sides: list[int | None] = []
            for step in (-1, 1):
                outside = not 0 <= at + step < parts
                used = dim >= 3 - options.dims and (options.periodic or not outside)
                sides.append(rank + ((at + step) % parts - at) * stride[dim] if used else None)
            self.neighbour.append(sides)

    def face(self, dim: int) -> int:
        return math.prod(self.n[other] for other in range(3) if other != dim)

    def boundary(self) -> int:
        """Numbers of all faces that have a neighbour."""
        return sum(self.face(dim) for dim in range(3) for peer in self.neighbour[dim] if peer is not None)


def write_rank(options: argparse.Namespace, machine: Machine, rank: int, kernels: Kernels) -> RankWriter:
    ranks = machine.ranks
    writer = RankWriter(rank, ranks)
    block = Block(options, ranks, rank)
    faces = block.boundary() * kernels["halo.face_s"] / 2  # before the exchange, and after it
    interior = max(0, math.prod(block.n) - block.boundary()) * kernels["halo.cell_s"]
    for steps in (STEPS_BEFORE, options.steps):
        writer.call("Barrier", comm=0)
        with writer.repeat(steps):
            writer.compute(2 * faces)
            if options.variant == "mpi":
                writer.compute(interior)
                _exchange(writer, block, options.dims)
            else:
                requests = _start(writer, block)
                writer.compute(interior)
                writer.complete(requests, "Waitall")
    for size in (32, 8):  # the times, and the checksum
        writer.call("Allreduce", comm=0, bytes=size)
    writer.call("Barrier", comm=0)
    return writer


def _exchange(writer: RankWriter, block: Block, dims: int) -> None:
    for dim in range(3):
        size = 8 * block.face(dim) if dim >= 3 - dims else 0
        for side in range(2):
            to, come = block.neighbour[dim][side], block.neighbour[dim][1 - side]
            tag = 2 * dim + side
            writer.call(
                "Sendrecv", comm=0, peer=NO_RANK if to is None else to, tag=tag, bytes=size,
                **{"from": NO_RANK if come is None else come}, from_tag=tag, from_bytes=size,
            )  # fmt: skip


def _start(writer: RankWriter, block: Block) -> list:
    return [
        writer.post(
            "Isend" if sends else "Irecv",
            comm=0,
            peer=peer,
            tag=2 * dim + (side if sends else 1 - side),
            bytes=8 * block.face(dim),
        )  # fmt: skip
        for sends in (False, True)
        for dim in range(3)
        for side, peer in enumerate(block.neighbour[dim])
        if peer is not None
    ]
