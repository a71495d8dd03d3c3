"""Loads the modules of the command, which takes a second, and runs it."""

import signal
import sys


def main() -> int:
    # While the modules load, an interrupt ends the process without a traceback. The command sets its own
    # handler afterwards.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from offpath.cli import main as command

    return command()


if __name__ == "__main__":
    sys.exit(main())
