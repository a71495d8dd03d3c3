"""Compares the MPI functions that a front end defines with calls.txt and collectives.txt: one that
neither has is not exported, and Fortran programs would pass it by; a line without a function would send them
in a circle.

usage: check.py NM LIBRARY CALLS.TXT COLLECTIVES.TXT MPI.H
"""

import re
import subprocess
import sys
from pathlib import Path

import table


def main() -> None:
    nm, library, calls_path, rows_path, header = sys.argv[1:]
    text = table.declarations(Path(header))
    paths = Path(calls_path), Path(rows_path)
    calls = table.read(*paths, text)
    intercepted = {call.name for call in calls} | {call.large for call in calls if call.large}
    known = {call.name for call in table.read(*paths, text, known=True)}
    listing = subprocess.run(
        [nm, "--defined-only", library], capture_output=True, text=True, check=True
    ).stdout
    defined = set(re.findall(r" [Tt] (MPIX?_[A-Z][a-z0-9]\w*)$", listing, re.MULTILINE))
    wrong = [
        f"{name} is defined, but "
        + (
            f"its line in {calls_path} starts with a dash: take it away"
            if name in known
            else f"has no line in {calls_path} and no row in {rows_path}: add one"
        )
        for name in sorted(defined - intercepted)
    ]
    wrong += [
        f"{name} has a line in {calls_path} or a row in {rows_path} and is not defined"
        for name in sorted(intercepted - defined)
    ]
    if wrong:
        Path(library).unlink()
        sys.exit("\n".join(f"check.py: {line}" for line in wrong))


if __name__ == "__main__":
    main()
