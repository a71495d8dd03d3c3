#!/usr/bin/env python3
"""The page of which lines the tests reach, by room.

usage: coverage_page.py SUMMARY PAGE     SUMMARY is what `gcovr --json-summary` wrote

Prints the rooms, the least covered one first.
"""

import json
import os
import platform
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
_HEAD = """# What the tests reach

After reading this page you know which share of each room's lines `make test` reaches. A line that
is reached is not yet tested: a test may run it and look at something else.

`make coverage` writes this page. It builds the tree once more, with GCC's counters and -O1, runs
the tests of `make test` and reads the counters with gcovr. Processes that a test kills leave no
counters, so lines that only they reach count as missed. Target regions run in such processes: this
is why `frontends/openmp/mpi`, MPI inside of regions, seems to be missed. The fuzzers, MPICH and
aarch64 are not in it (`make test-all`).
"""


@dataclass
class Lines:
    reached: int = 0
    all: int = 0

    @property
    def share(self) -> float:
        return 100 * self.reached / self.all if self.all else 100.0


def room_of(file: str) -> str:
    """The room of a source: the folder below src or below a front end."""
    parts = Path(file).parts
    depth = 2 if parts[0] == "src" else 3
    return "/".join(parts[:-1][:depth])


def by_room(files: list[dict]) -> dict[str, Lines]:
    """Sources include headers through links below the build's folder rooms, so a header has several names."""
    counted: dict[str, Lines] = {}
    for file in files:
        name = str((_ROOT / file["filename"]).resolve().relative_to(_ROOT))
        lines = Lines(file["line_covered"], file["line_total"])
        counted[name] = max(counted.get(name, lines), lines, key=lambda each: each.reached)
    rooms: dict[str, Lines] = defaultdict(Lines)
    for name, lines in counted.items():
        rooms[room_of(name)].reached += lines.reached
        rooms[room_of(name)].all += lines.all
    return dict(rooms)


def page(rooms: dict[str, Lines], where: str) -> str:
    whole = Lines(sum(r.reached for r in rooms.values()), sum(r.all for r in rooms.values()))
    rows = [
        f"| `{name}` | {lines.all} | {lines.all - lines.reached} | {lines.share:.1f} % |"
        for name, lines in sorted(rooms.items(), key=lambda item: item[1].share)
    ]
    table = ["| room | lines | missed | reached |", "| --- | ---: | ---: | ---: |", *rows]
    table.append(f"| all | {whole.all} | {whole.all - whole.reached} | {whole.share:.1f} % |")
    return "\n".join([_HEAD, where, "", *table, ""])


def main(summary: str, target: str) -> int:
    rooms = by_room(json.loads(Path(summary).read_text())["files"])
    revision = subprocess.run(
        ["git", "rev-parse", "--short=8", "HEAD"], cwd=_ROOT, capture_output=True, text=True
    ).stdout.strip()
    where = f"Revision {revision}, {platform.machine()} with {os.cpu_count()} cores:"
    Path(target).write_text(page(rooms, where))
    for name, lines in sorted(rooms.items(), key=lambda item: item[1].share)[:5]:
        print(f"{lines.share:5.1f} %  {name}")
    print(f"coverage: {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) == 3 else print(__doc__, file=sys.stderr) or 2)
