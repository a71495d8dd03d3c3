"""The skeleton of ring-hpl: panels of an LU factorization travel to all ranks while these update the rest of
the matrix (apps/ring-hpl)."""

import argparse
import math

from offpath.skeletons.command_line import Parser, within
from offpath.skeletons.kernels import Kernels
from offpath.skeletons.machine import Machine
from offpath.skeletons.profile_writer import RankWriter, Request

VARIANTS = ("mpi-ring", "mpi-ibcast")
TAG = 11


def parse(words: list[str]) -> argparse.Namespace:
    parser = Parser("ring-hpl")
    parser.add_argument("--variant", choices=VARIANTS, default="mpi-ring")
    parser.add_argument("--n", type=within(1, 10**6), default=4096)
    parser.add_argument("--nb", type=within(1, 8192), default=128)
    parser.add_argument("--chunk", type=within(0, 10**6))
    parser.add_argument("--iterations", type=within(1, 10**5), default=1)
    options = parser.parse_args(words)
    options.nb = min(options.nb, options.n)
    if options.chunk is None:
        options.chunk = options.nb if options.variant == "mpi-ring" else 0
    return options


class Shape:
    """The block-cyclic columns of a rank."""

    def __init__(self, n: int, nb: int, rank: int, ranks: int) -> None:
        self.n, self.nb, self.rank, self.ranks = n, nb, rank, ranks
        self.blocks = -(-n // nb)

    def owner(self, block: int) -> int:
        return block % self.ranks

    def width(self, block: int) -> int:
        return self.n - block * self.nb if block == self.blocks - 1 else self.nb

    def rows(self, block: int) -> int:
        return self.n - block * self.nb

    def panel_bytes(self, block: int) -> int:
        return 8 * self.width(block) * (1 + self.rows(block))

    def columns_from(self, block: int) -> int:
        """This rank's columns in `block` and those behind it."""
        mine = range(block + (self.rank - block) % self.ranks, self.blocks, self.ranks)
        return len(mine) * self.nb - (self.nb - self.width(self.blocks - 1) if self.blocks - 1 in mine else 0)


class Writer:
    def __init__(self, options: argparse.Namespace, rank: int, kernels: Kernels, machine: Machine) -> None:
        self.rank = RankWriter(rank, machine.ranks)
        self.shape = Shape(options.n, options.nb, rank, machine.ranks)
        self.options, self.kernels, self.machine = options, kernels, machine
        self.receive: Request | None = None
        self.sends: list[Request | None] = [None, None]  # by panel; of MPI_Ibcast: the requests
        self.tests = 0  # before the next call

    def factorize(self) -> None:
        self.rank.call("Barrier", comm=0)
        self.start(0)
        self.finish(0)
        for panel in range(self.shape.blocks):
            following = panel + 1
            columns, owned = self.shape.columns_from(following), 0.0
            if following < self.shape.blocks:
                if self.shape.owner(following) == self.rank.rank:
                    owned = self.update_s(panel, self.shape.width(following))
                    self.rank.compute(owned)
                    columns -= self.shape.width(following)
                self.start(following)
            self.update(panel, columns)
            if following < self.shape.blocks:
                self.finish(following)
        self.substitute_back()

    def update_s(self, panel: int, columns: int) -> float:
        width, below = self.shape.width(panel), self.shape.rows(panel) - self.shape.width(panel)
        return self.kernels["ring-hpl.flop_s"] * columns * (width * width + 2.0 * below * width)

    def factor_s(self, panel: int) -> float:
        width, rows = self.shape.width(panel), self.shape.rows(panel)
        return self.kernels["ring-hpl.panel_flop_s"] * width * width * (rows - width / 3)

    def start(self, panel: int) -> None:
        self.rank.complete([request for request in [self.sends[panel % 2]] if request], "Wait", self.tests)
        self.tests = 0
        self.sends[panel % 2] = None
        owner = self.shape.owner(panel)
        if owner == self.rank.rank:
            self.rank.compute(self.factor_s(panel))
        size = self.shape.panel_bytes(panel)
        if self.options.variant == "mpi-ibcast":
            self.sends[panel % 2] = self.rank.post("Ibcast", comm=0, peer=owner, bytes=size)
        elif owner == self.rank.rank:
            self.pass_on(panel)
        else:
            left = (self.rank.rank - 1) % self.shape.ranks
            self.receive = self.rank.post("Irecv", comm=0, peer=left, tag=TAG, bytes=size)

    def pass_on(self, panel: int) -> None:
        right = (self.rank.rank + 1) % self.shape.ranks
        if right != self.shape.owner(panel):
            self.sends[panel % 2] = self.rank.post(
                "Isend", comm=0, peer=right, tag=TAG, bytes=self.shape.panel_bytes(panel)
            )

    def update(self, panel: int, columns: int) -> None:
        """Computes in chunks, with an MPI_Test of the next panel after each. The panel goes on to the right
        after the chunk in which the machine's links should have brought it."""
        following = panel + 1
        if self.options.chunk == 0 or following >= self.shape.blocks:
            self.rank.compute(self.update_s(panel, columns))
            return
        chunk = self.options.chunk
        chunks = -(-columns // chunk)
        if self.receive is not None:
            arrived = self.chunks_until_arrival(panel, chunk)
            before = min(arrived, chunks)
            done = min(columns, before * chunk)
            self.rank.compute(self.update_s(panel, done))
            self.tests = max(0, before - 1)
            if arrived <= chunks:
                self.finish(following)
            columns, chunks = columns - done, chunks - before
        self.rank.compute(self.update_s(panel, columns))
        if self.sends[following % 2] is not None:
            self.tests = chunks

    def chunks_until_arrival(self, panel: int, chunk: int) -> int:
        following = panel + 1
        owner = self.shape.owner(following)
        arrival = self.update_s(panel, self.shape.width(following)) + self.factor_s(following)
        for hop in range((self.rank.rank - owner) % self.shape.ranks):
            arrival += self.machine.transfer_s(
                (owner + hop) % self.shape.ranks, (owner + hop + 1) % self.shape.ranks,
                self.shape.panel_bytes(following),
            )  # fmt: skip
        return 1 + math.floor(arrival / max(1e-12, self.update_s(panel, chunk)))

    def finish(self, panel: int) -> None:
        if self.options.variant == "mpi-ibcast":
            request = self.sends[panel % 2]
            if self.shape.owner(panel) != self.rank.rank and request is not None:
                self.rank.complete([request])
                self.sends[panel % 2] = None
        elif self.receive is not None:
            self.rank.complete([self.receive], tests=self.tests)
            self.tests = 0
            self.receive = None
            self.pass_on(panel)

    def substitute_back(self) -> None:
        for block in reversed(range(self.shape.blocks)):
            width, owner = self.shape.width(block), self.shape.owner(block)
            self.rank.call("Reduce", comm=0, peer=owner, bytes=8 * width)
            if owner == self.rank.rank:
                flops = width * width + 2.0 * width * block * self.shape.nb
                self.rank.compute(flops * self.kernels["ring-hpl.panel_flop_s"])
        self.rank.call("Allreduce", comm=0, bytes=8 * self.shape.n)

    def end(self) -> None:
        for _ in range(4):  # the times
            self.rank.call("Allreduce", comm=0, bytes=8 * self.options.iterations)
        self.rank.complete([request for request in self.sends if request], "Waitall")
        self.rank.call("Barrier", comm=0)


def write_rank(options: argparse.Namespace, machine: Machine, rank: int, kernels: Kernels) -> RankWriter:
    writer = Writer(options, rank, kernels, machine)
    for _ in range(options.iterations):
        writer.factorize()
        for _ in range(2):  # the residual
            writer.rank.call("Allreduce", comm=0, bytes=8 * options.n)
    writer.end()
    return writer.rank
