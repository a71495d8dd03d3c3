"""Loads the modules of the command, which takes a moment, and runs it."""

import signal
import sys


def main() -> int:
    # While the modules load, an interrupt ends the process without a traceback. The command sets its own
    # handler afterwards.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from offpath.cli import main as command

    # What is left behind the command is the interpreter's own end. An interrupt would make a traceback of it,
    # also one that came with the command's last words.
    code = 130
    try:
        code = command()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return code


if __name__ == "__main__":
    sys.exit(main())
