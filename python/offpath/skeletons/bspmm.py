"""The skeleton of bspmm's MPI variant: ranks claim units of a block-sparse product, get two tiles for
each, multiply them and add sums to tiles of C (apps/bspmm)."""

import argparse
import functools
import heapq

from offpath.skeletons.command_line import Parser, within
from offpath.skeletons.kernels import Kernels
from offpath.skeletons.machine import Machine
from offpath.skeletons.profile_writer import RankWriter, Request

_MASK = 2**64 - 1
TILES, COUNTER = 0, 1  # windows


def parse(words: list[str]) -> argparse.Namespace:
    parser = Parser("bspmm", ignored=("--no-verify", "--no-warm-up"))
    parser.add_argument("--variant", choices=("mpi-rma",), default="mpi-rma")
    parser.add_argument("--mesh", type=within(1, 128), default=16)  # more take minutes to lay out
    parser.add_argument("--tile", type=within(1, 8192), default=128)
    parser.add_argument("--sparsity", type=float)
    parser.add_argument("--seed", type=within(0, _MASK), default=1)
    parser.add_argument("--lookahead", type=within(0, 64), default=0)
    parser.add_argument("--iterations", type=within(1, 10**5), default=1)
    options = parser.parse_args(words)
    if options.sparsity is not None and not 0 <= options.sparsity < 1:
        parser.error(f"--sparsity {options.sparsity} is not accepted; 0 or more, less than 1 is")
    return options


def _mix(value: int) -> int:
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


class Problem:
    """Which tiles exist, the rank that holds each, and the units: tiles of A, B and C, by number."""

    def __init__(self, mesh: int, sparsity: float | None, seed: int, holders: int) -> None:
        self.mesh, self.sparsity, self.seed = mesh, sparsity, seed
        dense = [
            [self._is_dense(matrix, i, j) for i in range(mesh) for j in range(mesh)] for matrix in (0, 1)
        ]
        self.holder: list[list[int]] = []
        at: list[dict[tuple[int, int], int]] = []
        rows = [{(i, j) for i in range(mesh) for j in range(mesh) if dense[m][i * mesh + j]} for m in (0, 1)]
        inner = {(i, j): [k for k in range(mesh) if (i, k) in rows[0] and (k, j) in rows[1]]
                 for i in range(mesh) for j in range(mesh)}  # fmt: skip
        for present in (rows[0], rows[1], {place for place, through in inner.items() if through}):
            numbers = {place: number for number, place in enumerate(sorted(present))}
            at.append(numbers)
            self.holder.append([(number + row) % holders for (row, _), number in numbers.items()])
        self.units = [
            (at[0][i, k], at[1][k, j], at[2][i, j])
            for (i, j), through in sorted(inner.items())
            for k in through
        ]
        self.room = sum(max((held.count(rank) for rank in set(held)), default=0) for held in self.holder)

    def _is_dense(self, matrix: int, row: int, column: int) -> bool:
        if self.sparsity is not None:
            drawn = _mix(_mix((self.seed + matrix) & _MASK) ^ (row << 32 | column))
            return (drawn >> 11) * 2.0**-53 >= self.sparsity
        block = [0 if at < self.mesh // 2 else 1 if at < 3 * self.mesh // 4 else 2 for at in (row, column)]
        return block[0] == block[1]


@functools.lru_cache(maxsize=4)
def _problem(mesh: int, sparsity: float | None, seed: int, holders: int) -> Problem:
    return Problem(mesh, sparsity, seed, holders)


@functools.lru_cache(maxsize=4)
def _claims(problem: Problem, limit: int, machine: Machine, product_s: float, tile: int) -> list[list[int]]:
    """The units of each rank. A rank claims the next one when the machine should have finished its last one;
    in the program, that is decided by the moment."""
    claimed: list[list[int]] = [[] for _ in range(machine.ranks)]
    free = [(0.0, rank) for rank in range(machine.ranks)]
    for number, (a, b, _) in enumerate(problem.units[:limit]):
        time, rank = heapq.heappop(free)
        claimed[rank].append(number)
        fetched = sum(
            machine.transfer_s(holder, rank, 8.0 * tile * tile)
            for holder in (problem.holder[0][a], problem.holder[1][b])
            if holder != rank
        )
        heapq.heappush(free, (time + product_s + fetched, rank))
    return claimed


class Writer:
    def __init__(self, options: argparse.Namespace, rank: int, kernels: Kernels, machine: Machine) -> None:
        self.rank = RankWriter(rank, machine.ranks)
        self.problem = _problem(options.mesh, options.sparsity, options.seed, machine.ranks)
        self.options, self.machine = options, machine
        self.bytes = 8 * options.tile**2
        self.product_s = kernels["bspmm.flop_s"] * 2.0 * options.tile**3
        self.sums: list[Request | None] = [None] * (options.lookahead + 1)
        self.sum = 0
        self.rank.allocates()
        self.rank.window(self.problem.room * self.bytes)
        self.rank.window(8 if rank == 0 else 0)

    def claim(self) -> None:
        self.rank.call("Fetch_and_op", window=COUNTER, peer=0, bytes=8)
        self.rank.call("Win_flush", window=COUNTER, peer=0)

    def get(self, unit: int) -> list[Request]:
        requests = []
        for matrix in (0, 1):
            holder = self.problem.holder[matrix][self.problem.units[unit][matrix]]
            if holder == self.rank.rank:
                continue
            if self.options.lookahead > 0:
                requests.append(self.rank.post("Rget", window=TILES, peer=holder, bytes=self.bytes))
            else:
                self.rank.call("Get", window=TILES, peer=holder, bytes=self.bytes)
                self.rank.call("Win_flush", window=TILES, peer=holder)
        return requests

    def multiply(self, first_of_c: bool) -> None:
        if first_of_c:
            self.rank.complete([one for one in [self.sums[self.sum]] if one], "Wait")
            self.sums[self.sum] = None
        self.rank.compute(self.product_s)

    def add(self, c: int) -> None:
        holder = self.problem.holder[2][c]
        if self.options.lookahead > 0:
            self.sums[self.sum] = self.rank.post("Raccumulate", window=TILES, peer=holder, bytes=self.bytes)
        else:
            self.rank.call("Accumulate", window=TILES, peer=holder, bytes=self.bytes)
            self.rank.call("Win_flush", window=TILES, peer=holder)
        self.sum = (self.sum + 1) % len(self.sums)

    def run(self, limit: int) -> None:
        """The units below number `limit`, with the tiles of `lookahead` units under way beside a product."""
        mine = _claims(self.problem, limit, self.machine, self.product_s, self.options.tile)[self.rank.rank]
        self.rank.call("Barrier", comm=0)
        ahead = self.options.lookahead
        gets: dict[int, list[Request]] = {}
        begun = 0

        def begin() -> None:
            nonlocal begun
            self.claim()
            if begun < len(mine):
                gets[begun] = self.get(mine[begun])
            begun += 1

        for _ in range(ahead):
            begin()
        c = -1
        for number, unit in enumerate(mine):
            if ahead > 0:
                self.rank.complete(gets.pop(number), "Waitall")
                begin()
            else:
                self.claim()
                if c >= 0 and c != self.problem.units[unit][2]:
                    self.add(c)
                    c = -1
                self.rank.complete(self.get(unit), "Waitall")
            self.multiply(c < 0)
            c = self.problem.units[unit][2]
            following = self.problem.units[mine[number + 1]][2] if number + 1 < len(mine) else -1
            if ahead > 0 and following != c:
                self.add(c)
                c = -1
        # Claims that find no unit, because all are taken.
        if ahead == 0:
            self.claim()
            if c >= 0:
                self.add(c)
        for _ in range(ahead - len(mine)):
            self.claim()
        self.rank.complete([one for one in self.sums if one], "Waitall")
        self.sums = [None] * len(self.sums)
        self.rank.call("Win_flush_all", window=TILES)
        self.rank.call("Barrier", comm=0)
        self.rank.call("Win_sync", window=TILES)

    def restart(self) -> None:
        for window in (TILES, COUNTER):
            self.rank.call("Win_sync", window=window)
        self.rank.call("Barrier", comm=0)


def write_rank(options: argparse.Namespace, machine: Machine, rank: int, kernels: Kernels) -> RankWriter:
    writer = Writer(options, rank, kernels, machine)
    for window in (TILES, COUNTER):
        writer.rank.call("Win_lock_all", window=window)
    writer.restart()
    writer.rank.call("Barrier", comm=0)
    if not options.no_warm_up:
        writer.run(min(len(writer.problem.units), 4 * machine.ranks))
        writer.restart()
    for iteration in range(options.iterations):
        if iteration > 0:
            writer.restart()
        writer.run(len(writer.problem.units))
        writer.rank.call("Gather", comm=0, peer=0, bytes=8 * (11 + 2 * machine.ranks))
    writer.rank.call("Gather", comm=0, peer=0, bytes=8)
    for window in (TILES, COUNTER):
        writer.rank.call("Win_unlock_all", window=window)
    return writer.rank
