"""beat.py CPU MICROSECONDS: wakes up on that core at every beat and sleeps again, until the process that
started it is gone.

Each time, the scheduler looks whether the process that runs there has used up its slice. Part of
`offpath.lab.turns`; a program without imports of ours.
"""

import contextlib
import os
import sys
import time

CHECKED_EVERY = 1000  # beats


def main(cpu: int, microseconds: int) -> None:
    parent = os.getppid()
    os.sched_setaffinity(0, {cpu})
    # It is woken without delay then. That needs a right; an ordinary process is woken a little late at times.
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    sleep, seconds = time.sleep, microseconds / 1e6
    while os.getppid() == parent:
        for _ in range(CHECKED_EVERY):
            sleep(seconds)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
