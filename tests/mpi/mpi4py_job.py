"""Collectives and messages of a Python program: blocking and non-blocking, of buffers and pickled objects."""

import sys
from array import array

try:
    from mpi4py import MPI
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
failures = 0


def check(good, what):
    global failures
    if not good:
        failures += 1
        print(f"rank {rank}: FAILED {what}", file=sys.stderr)


def numbers(count, first):
    return array("i", range(first, first + count))


def of_all(count, place):
    """What every rank puts at `place` for us, one after the other."""
    return array(
        "i",
        [
            value
            for source in range(size)
            for value in range(source * 1000 + place, source * 1000 + place + count)
        ],
    )


n = 5000
send = array(
    "i", [value for target in range(size) for value in range(rank * 1000 + target, rank * 1000 + target + n)]
)
recv = array("i", [-1]) * (n * size)
world.Ialltoall([send, MPI.INT], [recv, MPI.INT]).Wait()
check(recv == of_all(n, rank), "Ialltoall")

recv = array("i", [-1]) * (n * size)
world.Alltoall([send, MPI.INT], [recv, MPI.INT])
check(recv == of_all(n, rank), "Alltoall")

gathered = array("i", [-1]) * (n * size)
mine = numbers(n, rank * 1000)  # requests keep nothing alive that they send
requests = [world.Iallgather([mine, MPI.INT], [gathered, MPI.INT])]
copy = numbers(n, 7) if rank == size - 1 else array("i", [0]) * n
requests.append(world.Ibcast([copy, MPI.INT], root=size - 1))
total = array("d", [0.0]) * n
part = array("d", [rank + 0.5]) * n
requests.append(world.Iallreduce([part, MPI.DOUBLE], [total, MPI.DOUBLE], op=MPI.SUM))
requests.append(world.Ibarrier())
statuses = [MPI.Status() for _ in requests]
MPI.Request.Waitall(requests, statuses)
check(gathered == of_all(n, 0), "Iallgather")
check(copy == numbers(n, 7), "Ibcast")
check(total == array("d", [size * (size - 1) / 2 + 0.5 * size]) * n, "Iallreduce")

halves = world.Split(rank % 2, key=-rank)
line = numbers(n, halves.rank)
halves.Bcast([line, MPI.INT], root=0)
check(line == numbers(n, 0), "Bcast on half of the ranks")
request = halves.Ibcast([line, MPI.INT], root=0)
while not request.Test():
    pass
halves.Free()

# Pickled objects: lower case. A list of 20,000 is a large message.
check(
    world.bcast({"rank": 0, "data": list(range(20000))} if rank == 0 else None, root=0)["data"][-1] == 19999,
    "bcast",
)
check(
    world.alltoall([(rank, target) for target in range(size)]) == [(source, rank) for source in range(size)],
    "alltoall",
)
check(world.allreduce(rank, op=MPI.MAX) == size - 1, "allreduce")
status = MPI.Status()
sent = world.isend(list(range(20000)), dest=(rank + 1) % size, tag=5)
got = world.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
sent.wait()
check(got[-1] == 19999 and (status.source, status.tag) == ((rank - 1) % size, 5), "isend and recv")

ring = array("i", [-1]) * n
mine = numbers(n, rank)
world.Sendrecv([mine, MPI.INT], dest=(rank + 1) % size, recvbuf=[ring, MPI.INT], source=(rank - 1) % size)
check(ring == numbers(n, (rank - 1) % size), "Sendrecv")

if size > 1:  # Open MPI 4.1 has no windows for one rank over these transports
    memory = MPI.Alloc_mem(1 << 20)
    memory[:4] = bytes([rank % 256] * 4)
    window = MPI.Win.Create(memory, comm=world)
    window.Fence()
    four = bytes([rank % 256] * 4)
    window.Put([four, MPI.BYTE], (rank + 1) % size, target=(8, 4, MPI.BYTE))
    window.Fence()
    check(bytes(memory[8:12]) == bytes([(rank - 1) % size % 256] * 4), "Put between fences")
    window.Free()
    MPI.Free_mem(memory)

sys.exit(1 if world.allreduce(failures) else 0)
