"""beat.py CPU MICROSECONDS: wakes up on that core at regular intervals and sleeps again, until the process
that started it is gone.

At each wake-up, the scheduler checks whether the process that is running there has used up its slice. This
program is part of `offpath.lab.turns`, but imports nothing of this package.
"""

import contextlib
import os
import sys
import time

CHECKED_EVERY = 1000  # beats


def main(cpu: int, microseconds: int) -> None:
    parent = os.getppid()
    os.sched_setaffinity(0, {cpu})
    # With this priority the process is woken without delay. It needs a right for that. An ordinary process is
    # sometimes woken a little late.
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    sleep, seconds = time.sleep, microseconds / 1e6
    while os.getppid() == parent:
        for _ in range(CHECKED_EVERY):
            sleep(seconds)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
