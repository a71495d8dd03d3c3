#!/usr/bin/env python3
"""Compares what the rooms of src/ include with what they declare, and both with the table in the docs.

A room is what offpath_room() in a CMakeLists.txt makes (cmake/Rooms.cmake). The build already hides rooms
that are not declared. This script also finds declarations that nothing needs, rooms that include each other,
includes that come by way of another room only, and programs outside src/ that see more than they should. It
writes the table of rooms in docs/architecture.md between the two marks there.

    scripts/check_layers.py            checks; exit code 1 and a list if something is wrong
    scripts/check_layers.py --write    writes the table, too
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- rooms: begin -->", "<!-- rooms: end -->"
INCLUDE = re.compile(r'^#\s*include "([^"]+)"', re.M)
SOURCES = {".h", ".cpp", ".c", ".hpp"}

# What programs outside of src/ may include of it. `frontends/mpi` is loaded before the program with the whole
# client.
OUTSIDE = {
    "frontends/mpi": {"base"},
    "frontends/shmem": {"base"},
    "apps": set(),
    "examples": set(),
}
# One line for each room in the table.
PURPOSE = {
    "base": "status, log, settings, clock, completions, descriptors, fields of records",
    "schedule": "ops, builder, validator, wire form, GOAL export",
    "transport": "the interface to a network; `tcp/`, `loopback/`, `faulty/`",
    "transport_ucx": "the same over UCX; only this room sees UCX",
    "matching": "queues of receives and messages; no I/O",
    "rma": "operations on windows, ranges, locks, flushes; no I/O",
    "memory_exported": "what back end `xgvmi` needs of a fabric: interfaces",
    "memory": "how a proxy reaches host memory: `map`, `cma`, `staged`, `xgvmi`",
    "collectives": "one builder for each algorithm, and the choice between them",
    "engine_shared": "names and settings that all parts of the engine share",
    "engine_mover": "peers, transfers, bounce buffers: moves bytes and knows no owner",
    "engine_reductions": "the vector code of reductions, atomic updates",
    "engine_teams": "sessions, teams, and what a tenant is",
    "engine_schedules": "tenant: runs instances of plans",
    "engine_messages": "tenant: basic and keyed messages",
    "engine_onesided": "tenant: operations on windows",
    "engine": "the core: dispatch by kind of message, the order of a round",
    "control": "what client and daemon say to each other",
    "link": "channel and staging over a transport, for remote attach",
    "link_choice": "which transport a link goes by",
    "link_plugin": "opens `liboffpath-link.so`, which brings UCX, on demand",
    "client": "implements the C API inside the application",
    "kernel_host": "the process that runs a program's kernels",
    "proxy": "`offpathd`",
}


class Room:
    def __init__(self, name: str, folder: Path, links: set[str]) -> None:
        self.name = name
        self.folder = folder
        self.links = links
        self.includes: dict[str, list[str]] = {}  # room: files that include it


def read_rooms() -> dict[str, Room]:
    rooms: dict[str, Room] = {}
    call = re.compile(r"offpath_room\((\w+)(.*?)\)", re.S)
    for path in sorted((ROOT / "src").rglob("CMakeLists.txt")):
        for name, rest in call.findall(path.read_text()):
            declared = rest.partition("LINKS")[2].split()
            links = {each.removeprefix("offpath_") for each in declared if each.startswith("offpath_")}
            rooms[name] = Room(name, path.parent, links)
    return rooms


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in SOURCES)


def room_of(path: Path, rooms: dict[str, Room]) -> Room | None:
    """The room with the innermost folder around `path`."""
    around = [room for room in rooms.values() if room.folder in path.parents]
    return max(around, key=lambda room: len(room.folder.parts), default=None)


def fill_includes(rooms: dict[str, Room]) -> list[str]:
    wrong = []
    for path in files_of(ROOT / "src"):
        room = room_of(path, rooms)
        if room is None:
            continue
        for include in INCLUDE.findall(path.read_text()):
            target = ROOT / "src" / include
            if not target.exists():
                continue
            of = room_of(target, rooms)
            if of is None:
                wrong.append(f"{path.relative_to(ROOT)} includes {include}, which is in no room")
            elif of is not room:
                room.includes.setdefault(of.name, []).append(str(path.relative_to(ROOT)))
    return wrong


def differences(rooms: dict[str, Room]) -> list[str]:
    wrong = []
    for room in rooms.values():
        for name in sorted(room.includes.keys() - room.links):
            wrong.append(f"{room.name} includes {name} without declaring it: {room.includes[name][0]}")
        for name in sorted(room.links - room.includes.keys()):
            wrong.append(f"{room.name} declares {name} and includes nothing of it")
        if room.name not in PURPOSE:
            wrong.append(f"{room.name} has no purpose in {Path(__file__).name}")
    return wrong


def circles(rooms: dict[str, Room]) -> list[str]:
    wrong: list[str] = []
    done: set[str] = set()

    def visit(name: str, way: list[str]) -> None:
        if name in way:
            wrong.append("a circle of rooms: " + " -> ".join([*way[way.index(name) :], name]))
            return
        if name in done or name not in rooms:
            return
        for below in sorted(rooms[name].includes):
            visit(below, [*way, name])
        done.add(name)

    for name in rooms:
        visit(name, [])
    return wrong


def outsiders(rooms: dict[str, Room]) -> list[str]:
    wrong = []
    for folder, allowed in OUTSIDE.items():
        for path in files_of(ROOT / folder):
            for include in INCLUDE.findall(path.read_text()):
                if (path.parent / include).exists() or (ROOT / folder / include).exists():
                    continue
                of = room_of(ROOT / "src" / include, rooms) if (ROOT / "src" / include).exists() else None
                if of is not None and of.name not in allowed:
                    wrong.append(
                        f"{path.relative_to(ROOT)} includes {include}: {folder} may see no {of.name}"
                    )
    return wrong


def table(rooms: dict[str, Room]) -> str:
    levels: dict[str, int] = {}

    def level(name: str) -> int:
        if name not in levels:
            levels[name] = 0
            levels[name] = 1 + max((level(below) for below in rooms[name].includes), default=0)
        return levels[name]

    lines = ["| room | what lives there | includes |", "| --- | --- | --- |"]
    for name in sorted(rooms, key=lambda each: (level(each), each)):
        room = rooms[name]
        below = ", ".join(sorted(room.includes)) or "-"
        lines.append(f"| `{name}` ({room.folder.relative_to(ROOT)}) | {PURPOSE.get(name, '')} | {below} |")
    return "\n".join(lines)


def page_with(text: str) -> str:
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Compares includes with declared rooms.")
    parser.add_argument("--write", action="store_true", help="write the table of docs/architecture.md")
    arguments = parser.parse_args()
    rooms = read_rooms()
    wrong = fill_includes(rooms) + differences(rooms) + circles(rooms) + outsiders(rooms)
    page = page_with(table(rooms))
    if arguments.write:
        PAGE.write_text(page)
    elif page != PAGE.read_text():
        wrong.append("the table of docs/architecture.md is old: scripts/check_layers.py --write")
    for line in wrong:
        print(line, file=sys.stderr)
    if not wrong:
        print(f"{len(rooms)} rooms include what they declare")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
