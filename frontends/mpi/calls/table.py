"""Reads calls.txt and the table of collectives: which calls the front end intercepts and what they take."""

import re
from dataclasses import dataclass
from pathlib import Path

from offpath import collectives

HANDLES = {
    "comm": "Comm",
    "type": "Type",
    "op": "Op",
    "group": "Group",
    "info": "Info",
    "win": "Win",
    "request": "Request",
    "message": "Message",
    "errhandler": "Errhandler",
    "session": "Session",
}
_LINE = re.compile(r"(?:(?P<mark>[-+cf])\s+)?(?P<name>\w+)\((?P<parameters>.*)\)(?:\s*->\s*(?P<hook>\w+))?$")
_KIND = re.compile(
    r"(buffer|weights|argv|handler|pointer\*"
    r"|(?:int|aint)(?:\[\]|\*)?"
    r"|logical(?:\*|\[\w+\])?|index(?:\*|\[\w+\])|status(?:\*|\[\w+\])"
    rf"|(?:{'|'.join(HANDLES)})(?:\*|&|\[\w+\]&?)?)$"
)


@dataclass(frozen=True)
class Parameter:
    kind: str
    name: str

    @property
    def base(self) -> str:
        return re.match(r"\w+", self.kind)[0]

    @property
    def shape(self) -> str:
        """What follows the base: "", "*", "&", "[]", "[n]" or "[n]&", where n is any word."""
        return re.sub(r"\[\w+\]", "[n]", self.kind[len(self.base) :])

    @property
    def length(self) -> str | None:
        found = re.search(r"\[(\w+)\]", self.kind)
        return found and found[1]


@dataclass(frozen=True)
class Call:
    name: str  # with its prefix, MPI_ or MPIX_
    parameters: tuple[Parameter, ...]
    hook: str | None
    large: str | None  # the name of the form with large counts, if the MPI has it
    generated: bool  # that form is
    for_fortran: bool  # it has bindings for Fortran
    by_hand: bool  # which are written by hand

    @property
    def has_buffer(self) -> bool:
        return any(p.kind == "buffer" for p in self.parameters)


class TableError(Exception):
    pass


def declarations(mpi_header: Path) -> str:
    """Returns the headers of all calls: mpi.h, the files that MPICH's includes, and Open MPI's extensions."""
    headers = [
        mpi_header,
        *mpi_header.parent.glob("mpi_proto.h"),
        *sorted(mpi_header.parent.glob("openmpi/mpiext/mpiext_*_c.h")),
    ]
    return "".join(header.read_text(errors="replace") for header in headers)


def forms(row: collectives.Collective) -> list[str]:
    """Returns a collective as lines of calls.txt: non-blocking, blocking, persistent."""
    return [
        f"I{row.name}({row.parameters}, request* request)",
        f"{row.name.capitalize()}({row.parameters})",
        f"{row.name.capitalize()}_init({row.parameters}, info info, request* request)",
    ]


def _lines(path: Path, rows: Path) -> list[tuple[str, str]]:
    """Returns the place and the text of each line."""
    try:
        found = [(f"{rows}: {row.name}", line) for row in collectives.read(rows) for line in forms(row)]
    except collectives.TableError as error:
        raise TableError(str(error)) from None
    for number, text in enumerate(path.read_text().splitlines(), 1):
        line = text.strip()
        if line and not line.startswith("#"):
            found.append((f"{path}:{number}", line))
    return found


def read(path: Path, rows: Path, declared: str, known: bool = False) -> list[Call]:
    """Returns the calls that are `declared` and intercepted: those of calls.txt and the forms of the
    collectives in `rows`. With `known`, returns those that are not intercepted instead."""
    calls = []
    for where, line in _lines(path, rows):
        found = _LINE.match(line)
        if not found:
            raise TableError(f"{where}: no call: {line}")
        parameters = tuple(_parameter(text, where) for text in found["parameters"].split(",") if text.strip())
        name = next(
            (
                p + found["name"]
                for p in ("MPI_", "MPIX_")
                if re.search(rf"\b{p}{found['name']}\s*\(", declared)
            ),
            None,
        )
        if name and (found["mark"] == "-") == known:
            large = f"{name}_c" if re.search(rf"\b{name}_c\s*\(", declared) else None
            calls.append(
                Call(
                    name,
                    parameters,
                    found["hook"],
                    large,
                    found["mark"] == "+",
                    found["mark"] != "c",
                    found["mark"] == "f",
                )
            )
    names = [call.name for call in calls]
    if twice := {name for name in names if names.count(name) > 1}:
        raise TableError(f"{path}, {rows}: more than one line for {', '.join(sorted(twice))}")
    return calls


def _parameter(text: str, where: str) -> Parameter:
    kind, _, name = text.strip().rpartition(" ")
    if not _KIND.match(kind):
        raise TableError(f"{where}: {kind!r} of {name!r} is no kind of parameter")
    return Parameter(kind, name)
