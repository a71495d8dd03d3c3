"""Process 1 of a lab: starts the command inside the namespaces, reaps orphans, and ends everything.

Usage: python -m offpath.lab.init OWNER CONTROL_FD STATUS_FD COMMAND_LINE...
    OWNER       mark of the command outside, for `offpath lab clean`
    CONTROL_FD  read end of a pipe: a byte "i" or "t" passes SIGINT or SIGTERM on; end of file means that
                the command outside is gone, for whatever reason, and ends the lab
    STATUS_FD   receives the byte "1" when the namespaces exist, and "." when the command has ended

This is process 1 of a pid namespace. When it exits, the kernel kills every process of the lab, and with them
the network namespaces, the links and the private /dev/shm disappear. This module must not import anything
that is slow or can fail.
"""

import os
import select
import signal
import sys
import time

GRACE_SECONDS = 3.0


def main(argv: list[str]) -> int:
    owner, control, status, command = argv[0], int(argv[1]), int(argv[2]), argv[3:]
    # These signals are blocked here: one that is passed on at once must not reach the worker before Python
    # has reset the signal handlers inherited from its parent.
    passed_on = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, passed_on)
    worker = os.fork()
    if worker == 0:
        os.close(control)
        os.close(status)
        # While the command loads, an interrupt ends it without a traceback. The command sets its own handler
        # afterwards.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, passed_on)
        os.environ["OFFPATH_LAB_INSIDE"] = owner
        from offpath.cli import main as command_main

        sys.argv = ["offpath", *command]
        sys.exit(command_main())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, passed_on)
    os.write(status, b"1")

    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    deadline = None
    watched = [wake_read, control]
    while True:
        code = reap(worker)
        if code is not None:
            os.write(status, b".")
            return code
        timeout = None if deadline is None else max(0.0, deadline - time.monotonic())
        if timeout == 0.0:
            return 137
        ready, _, _ = select.select(watched, [], [], timeout)
        if wake_read in ready:
            os.read(wake_read, 4096)
        if control in ready:
            request = os.read(control, 1)
            if not request:
                watched.remove(control)
                deadline = time.monotonic() + GRACE_SECONDS
            os.kill(worker, signal.SIGINT if request == b"i" else signal.SIGTERM)


def reap(worker: int) -> int | None:
    """Reaps orphans of the lab. Returns the exit code of the worker if it has ended."""
    try:
        while True:
            pid, state = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return None
            if pid == worker:
                code = os.waitstatus_to_exitcode(state)
                return code if code >= 0 else 128 - code
    except ChildProcessError:
        return 1


if __name__ == "__main__":
    # Exits directly: no handler may keep process 1, and with it the whole lab, alive.
    os._exit(main(sys.argv[1:]))
