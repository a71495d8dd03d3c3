"""Loads the command, which takes a second, and runs it."""

import signal
import sys


def main() -> int:
    # An interrupt while the modules are being loaded ends the process without a traceback; the command sets
    # its own handler then.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from offpath.cli import main as command

    return command()


if __name__ == "__main__":
    sys.exit(main())
