#!/usr/bin/env python3
"""Compares what rooms include with what they declare, and both with the tables in the docs.

A room is what offpath_room() in a CMakeLists.txt makes (cmake/Rooms.cmake). The build already hides rooms
that are not declared. This script also finds declarations that nothing needs, rooms that include each other,
includes that come by way of another room only, and programs outside src/ that see more than they should. It
writes the tables of rooms in docs/architecture.md between the marks there.

The front end for MPI has rooms of its own: the folders that front_end_room() in frontends/mpi/CMakeLists.txt
declares, lowest first. They share one library, so only this script keeps a room from including one above it.
The build runs it with --front-end.

The rooms of some programs (FOLDERS) are their folders, which declare nothing. They must not include each
other in circles, and the table is in a page of the program.

    scripts/check_layers.py              checks; exit code 1 and a list if something is wrong
    scripts/check_layers.py --write      writes the tables, too
    scripts/check_layers.py --front-end  checks the includes of the front end's rooms only
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"
MARKS = ("<!-- rooms: begin -->", "<!-- rooms: end -->")
FRONT_END = ROOT / "frontends" / "mpi"
FRONT_END_MARKS = ("<!-- rooms of frontends/mpi: begin -->", "<!-- rooms of frontends/mpi: end -->")
INCLUDE = re.compile(r'^#\s*include "([^"]+)"', re.M)
SOURCES = {".h", ".cpp", ".c", ".hpp"}

# What programs outside of src/ may include from it. `frontends/mpi` is loaded before the program, together
# with the whole client.
OUTSIDE = {
    "frontends/mpi": {"base", "memory", "trace", "ways"},
    "frontends/trace": {"base", "trace"},
    "frontends/shmem": {"base"},
    "frontends/openmp": {"base", "memory", "target", "target_program"},
    "apps": {"command_line"},
    "examples": {"command_line"},
    "sim": {
        "base",
        "collectives",
        "command_line",
        "engine",
        "engine_messages",
        "engine_mover",
        "engine_onesided",
        "engine_schedules",
        "memory",
        "rma",
        "schedule",
        "transport",
        "ways",
    },
}
# One line for each room in the table.
PURPOSE = {
    "command_line": "options, flags and help of programs; only this room sees CLI11",
    "base": "status, log, settings, clock, completions, descriptors, fields of records",
    "trace": "records of what a process does, in memory mapped from a file",
    "schedule": "ops, builder, validator, wire form, GOAL export",
    "transport": "the interface to a network; `tcp/`, `loopback/`, `faulty/`",
    "transport_ucx": "the same over UCX; only this room sees UCX",
    "matching": "queues of receives and messages; no I/O",
    "rma": "operations on windows, ranges, locks, flushes; no I/O",
    "ways": "when to take which way: host or device, own proxy or the target's; pure",
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
    "target": "the line between a program and the process that runs its target regions",
    "target_host": "that process",
    "target_program": "the program's end of it",
    "proxy": "`offpathd`",
}
FRONT_END_PURPOSE = {
    "gpu": "the drivers of GPUs, opened where a program has them; memory that only they may touch",
    "program_memory": "buffers that the device maps; the calls by which memory of the program ends",
    "runtime": "the attachment, settings, losses, staging memory, error handlers, how threads wait",
    "datatypes": "MPI's datatypes and reductions as the device knows them",
    "communicators": "teams, counts for the summary",
    "requests": "the requests of offloaded calls, persistent requests, buffers",
    "devices": "messages between this host and devices of ranks",
    "tuning": "which calls go to the device, by measurement; agreements of a communicator's ranks",
    "p2p": "point-to-point messages",
    "p2p/calls": "MPI's calls for them",
    "rma": "windows",
    "rma/calls": "MPI's calls for them",
    "collectives/common": "what all collectives share",
    "collectives": "one file for each collective",
    "tools": "MPI_T: settings and counters as variables for tools",
    "calls": "the other intercepted calls, and the table of parts that the lower rooms call",
}


# Programs in which each folder is a room: the beginning of their includes, the page with the table, and what
# else of src/ they may include.
FOLDERS = {
    "apps/minimd": ("apps", "apps/minimd/README.md", {"apps/support"}),
}
FOLDER_PURPOSE = {
    "apps/minimd": {
        "base": "settings, atoms, results, slots in memory, clocks; no MPI",
        "kernels": "the loops over pairs, for each instruction set; devices run them too",
        "cells": "atoms in columns, and the search for pairs",
        "domain": "subdomains, ghosts, migration of atoms",
        "files": "files that all ranks read or write together; restart files",
        "report": "what is written: screen, JSON, YAML, dumps",
        "setup": "what is read: command line, input file, potentials; the atoms of the start",
        "dynamics": "steps, forces, rebuilds; the interface of what takes part in steps",
        "offpath": "the off-path algorithm, devices as ranks, over the runtime and by OpenMP",
        "roofline": "the program `minimd-roofline`",
    },
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


def read_front_end_rooms() -> dict[str, Room]:
    """The rooms of the front end, lowest first."""
    rooms: dict[str, Room] = {}
    text = (FRONT_END / "CMakeLists.txt").read_text()
    for name, rest in re.findall(r"^front_end_room\(([\w/]+)(.*?)\)", text, re.S | re.M):
        rooms[name] = Room(name, FRONT_END / name, set(rest.partition("USES")[2].split()))
    return rooms


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in SOURCES)


def room_of(path: Path, rooms: dict[str, Room]) -> Room | None:
    """The room whose folder is the innermost one around `path`."""
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


def fill_front_end_includes(rooms: dict[str, Room]) -> list[str]:
    wrong = []
    for path in files_of(FRONT_END):
        room = room_of(path, rooms)
        if room is None:
            wrong.append(f"{path.relative_to(ROOT)} is in no room")
            continue
        for include in INCLUDE.findall(path.read_text()):
            beside = path.parent / include
            target = beside if beside.exists() else FRONT_END / include
            of = room_of(target.resolve(), rooms) if target.exists() else None
            if of is not None and of is not room:
                room.includes.setdefault(of.name, []).append(str(path.relative_to(ROOT)))
    return wrong


def upward(rooms: dict[str, Room]) -> list[str]:
    order = list(rooms)
    return [
        f"{files[0]} includes {name}, a room that is not below {room.name}"
        for room in rooms.values()
        for name, files in room.includes.items()
        if order.index(name) > order.index(room.name)
    ]


def differences(rooms: dict[str, Room], purpose: dict[str, str]) -> list[str]:
    wrong = []
    for room in rooms.values():
        for name in sorted(room.includes.keys() - room.links):
            wrong.append(f"{room.name} includes {name} without declaring it: {room.includes[name][0]}")
        for name in sorted(room.links - room.includes.keys()):
            wrong.append(f"{room.name} declares {name} and includes nothing of it")
        if room.name not in purpose:
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


def read_folders(folder: str) -> tuple[dict[str, Room], list[str]]:
    """The rooms of a program, and the errors in its includes. Files outside of the rooms' folders are above
    all rooms."""
    begin, _, others = FOLDERS[folder]
    top = ROOT / folder
    names = FOLDER_PURPOSE[folder]
    rooms = {name: Room(name, top / name, set()) for name in names}
    wrong = [f"{folder} has no room {name}" for name in names if not (top / name).is_dir()]
    for path in files_of(top):
        room = room_of(path, rooms)
        for include in INCLUDE.findall(path.read_text()):
            target = ROOT / begin / include
            if not target.exists():
                continue
            of = room_of(target, rooms)
            if of is None and room is not None and top in target.parents:
                wrong.append(f"{path.relative_to(ROOT)} includes {include}, which is above all rooms")
            elif top not in target.parents and not any(ROOT / other in target.parents for other in others):
                wrong.append(f"{path.relative_to(ROOT)} includes {include}, which is of another program")
            elif of is not None and room is not None and of is not room:
                room.includes.setdefault(of.name, []).append(str(path.relative_to(ROOT)))
    return rooms, wrong


def levels_of(rooms: dict[str, Room]) -> dict[str, int]:
    levels: dict[str, int] = {}

    def level(name: str) -> int:
        if name not in levels:
            levels[name] = 0
            levels[name] = 1 + max((level(below) for below in rooms[name].includes), default=0)
        return levels[name]

    for name in rooms:
        level(name)
    return levels


def table(rows: list[tuple[str, str, Room]]) -> str:
    """The table. Each row has a name, a purpose and the room."""
    lines = ["| room | what lives there | includes |", "| --- | --- | --- |"]
    for name, purpose, room in rows:
        below = ", ".join(sorted(room.includes)) or "-"
        lines.append(f"| {name} | {purpose} | {below} |")
    return "\n".join(lines)


def rows_of(rooms: dict[str, Room]) -> list[tuple[str, str, Room]]:
    levels = levels_of(rooms)
    return [
        (f"`{name}` ({rooms[name].folder.relative_to(ROOT)})", PURPOSE.get(name, ""), rooms[name])
        for name in sorted(rooms, key=lambda each: (levels[each], each))
    ]


def rows_of_folder(folder: str, rooms: dict[str, Room]) -> list[tuple[str, str, Room]]:
    levels = levels_of(rooms)
    names = sorted(rooms, key=lambda each: (levels[each], each))
    return [(f"`{name}`", FOLDER_PURPOSE[folder].get(name, ""), rooms[name]) for name in names]


def with_table(page: str, marks: tuple[str, str], text: str) -> str:
    begin, end = marks
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{text}\n{end}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Compares includes with declared rooms.")
    parser.add_argument("--write", action="store_true", help="write the table of docs/architecture.md")
    parser.add_argument("--front-end", action="store_true", help="check the includes of frontends/mpi only")
    arguments = parser.parse_args()
    front_end = read_front_end_rooms()
    wrong = fill_front_end_includes(front_end) + upward(front_end)
    wrong += differences(front_end, FRONT_END_PURPOSE)
    rooms: dict[str, Room] = {}
    if not arguments.front_end:
        rooms = read_rooms()
        wrong += fill_includes(rooms) + differences(rooms, PURPOSE) + circles(rooms) + outsiders(rooms)
        page = with_table(PAGE.read_text(), MARKS, table(rows_of(rooms)))
        rows = [(f"`{name}`", FRONT_END_PURPOSE.get(name, ""), room) for name, room in front_end.items()]
        page = with_table(page, FRONT_END_MARKS, table(rows))
        pages = {PAGE: page}
        for folder, (_, name, _) in FOLDERS.items():
            of_program, problems = read_folders(folder)
            wrong += problems + circles(of_program)
            pages[ROOT / name] = with_table(
                (ROOT / name).read_text(), MARKS, table(rows_of_folder(folder, of_program))
            )
        for path, text in pages.items():
            if arguments.write:
                path.write_text(text)
            elif text != path.read_text():
                wrong.append(f"a table of {path.relative_to(ROOT)} is old: scripts/check_layers.py --write")
    for line in wrong:
        print(line, file=sys.stderr)
    if not wrong:
        print(f"{len(rooms) + len(front_end)} rooms include what they declare")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
