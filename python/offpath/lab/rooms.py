"""Where labs and jobs make their directories, which hold the sockets of daemons."""

import os
import socket
import tempfile
from pathlib import Path

_LONGEST_SOCKET = 107  # bytes of a socket's path that the kernel accepts
_LONGEST_ROOM = "offpath-run-12345678/node9999"


def root() -> Path:
    """TMPDIR, or /tmp if the paths of sockets there would be too long."""
    chosen = Path(tempfile.gettempdir())
    longest = chosen / _LONGEST_ROOM / f"{socket.gethostname()}.sock"
    return chosen if len(os.fsencode(longest)) <= _LONGEST_SOCKET else Path("/tmp")
