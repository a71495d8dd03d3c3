"""The skeleton of fft3d: forward and inverse 3-D FFTs on pencils, with MPI_Ialltoallv of one variable under
the transforms of the others (apps/fft3d)."""

import argparse
import math
from typing import Any

from offpath.skeletons.command_line import Parser, sizes, within
from offpath.skeletons.kernels import Kernels
from offpath.skeletons.machine import Machine
from offpath.skeletons.profile_writer import RankWriter, Request

COMPLEX = 16  # bytes


def parse(words: list[str]) -> argparse.Namespace:
    parser = Parser("fft3d", ignored=("--no-verify",))
    parser.add_argument("--n", type=sizes(3), default=(192, 192, 192))
    parser.add_argument("--variables", type=within(1, 1024), default=4)
    parser.add_argument("--iterations", type=within(1, 10**6), default=5)
    parser.add_argument("--warmup", type=within(0, 10**6), default=1)
    parser.add_argument("--grid", type=sizes(2))
    parser.add_argument("--in-flight", type=within(1, 1024))
    parser.add_argument("--no-overlap", action="store_true")
    options = parser.parse_args(words)
    options.refuse = parser.refuse
    return options


def block(n: int, parts: int, index: int) -> int:
    """The length of a part, where n is cut into `parts`."""
    return n // parts + (index < n % parts)


def grid_of(ranks: int) -> tuple[int, int]:
    """The two factors of `ranks` that are closest, the larger one first, as MPI_Dims_create chooses them."""
    q = max(q for q in range(1, math.isqrt(ranks) + 1) if ranks % q == 0)
    return ranks // q, q


class Pencils:
    """What a rank has at each of the five stages, and what it exchanges between them."""

    def __init__(self, n: tuple[int, ...], grid: tuple[int, int], rank: int) -> None:
        (parts_p, parts_q), (p, q) = grid, divmod(rank, grid[1])
        x, z = block(n[0], parts_p, p), block(n[2], parts_q, q)
        y_of_row, y_of_column = block(n[1], parts_q, q), block(n[1], parts_p, p)
        self.points = [x * y_of_row * n[2], x * n[1] * z, n[0] * y_of_column * z]
        row = ([x * y_of_row * block(n[2], parts_q, at) for at in range(parts_q)],
               [x * z * block(n[1], parts_q, at) for at in range(parts_q)])  # fmt: skip
        column = ([x * z * block(n[1], parts_p, at) for at in range(parts_p)],
                  [y_of_column * z * block(n[0], parts_p, at) for at in range(parts_p)])  # fmt: skip
        # The communicator (row or column), and the points that are sent to each of its ranks and received.
        self.exchanges = [
            (0, row[0], row[1]),
            (1, column[0], column[1]),
            (1, column[1], column[0]),
            (0, row[1], row[0]),
        ]
        self.row = [p * parts_q + at for at in range(parts_q)]
        self.column = [at * parts_q + q for at in range(parts_p)]


class Lane:
    def __init__(self) -> None:
        self.stage = -1  # no variable
        self.request: Request | None = None


def write_rank(options: argparse.Namespace, machine: Machine, rank: int, kernels: Kernels) -> RankWriter:
    ranks = machine.ranks
    grid = options.grid or grid_of(ranks)
    if grid[0] * grid[1] != ranks:
        raise options.refuse(
            f"--grid {grid[0]}x{grid[1]} needs {grid[0] * grid[1]} ranks, and there are {ranks}"
        )
    writer = RankWriter(rank, ranks)
    pencils = Pencils(options.n, grid, rank)
    writer.communicator(range(ranks))  # the Cartesian one
    comms = [writer.communicator(pencils.row), writer.communicator(pencils.column)]
    with writer.repeat(options.warmup + options.iterations):
        writer.call("Barrier", comm=0)
        _iteration(writer, options, pencils, comms, kernels)
    for _ in range(3):
        writer.call("Allreduce", comm=0, bytes=8 * options.iterations)
    writer.call("Barrier", comm=0)
    return writer


def _iteration(
    writer: RankWriter, options: argparse.Namespace, pencils: Pencils, comms: list[int], kernels: Kernels
) -> None:
    waves = -(-options.variables // 4)
    lanes = [
        Lane() for _ in range(min(options.in_flight or -(-options.variables // waves), options.variables))
    ]
    if options.no_overlap:
        lanes = lanes[:1]
    left = options.variables

    def compute_and_post(lane: Lane) -> None:
        stage = lane.stage
        # The middle stage transforms along x and back.
        for axis in ((2,), (1,), (0, 0), (1,), (2,))[stage]:
            writer.compute(
                kernels["fft3d.point_s"] * pencils.points[2 - axis] * math.log2(max(2, options.n[axis]))
            )
        if stage == 4:
            lane.stage = -1
            return
        which, send, receive = pencils.exchanges[stage]
        if len(send) == 1:
            return
        fields: dict[str, Any] = {
            "comm": comms[which],
            "list": [COMPLEX * count for count in [*send, *receive]],
        }
        if options.no_overlap:
            writer.call("Alltoallv", **fields)
        else:
            lane.request = writer.post("Ialltoallv", **fields)

    def begin(lane: Lane) -> None:
        nonlocal left
        if left > 0:
            left -= 1
            lane.stage = 0
            compute_and_post(lane)

    for lane in lanes:
        begin(lane)
    while any(lane.stage >= 0 for lane in lanes):
        for lane in lanes:
            if lane.stage < 0:
                continue
            if lane.request is not None:
                writer.complete([lane.request])
                lane.request = None
            lane.stage += 1
            compute_and_post(lane)
            if lane.stage < 0:
                begin(lane)
