"""The collectives that the MPI front end offloads. They are the rows of collectives.txt, whose first lines
explain the columns.

The build also reads them with this module, using the system's Python. So the module imports only the standard
library.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).with_name("collectives.txt")
BYTES = ("pair", "each", "blocks", "vector", "-")
TRAITS = ("sync", "tune", "-")
_ROW = re.compile(
    r"(?P<name>[a-z_]+) +(?P<bytes>\S+) +(?P<least>\S+) +(?P<traits>\S+) +(?P<shape>\S+) +(?P<parameters>.+)"
)


class TableError(Exception):
    pass


@dataclass(frozen=True)
class Collective:
    name: str
    bytes: str  # the bytes that the switch-over counts, one of BYTES
    switch_over: int  # 0: the operation has no data
    traits: frozenset[str]
    shape: str | None  # None: the benchmark does not measure it
    parameters: str  # of the blocking form

    @property
    def op(self) -> str:
        """The name in settings, tuning tables and benchmarks."""
        return f"i{self.name}"

    @property
    def has_data(self) -> bool:
        return self.bytes != "-"


def read(path: Path = TABLE) -> list[Collective]:
    """The rows in order. The first row is operation 0."""
    rows = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line and not line.startswith("#"):
            try:
                rows.append(_row(line))
            except ValueError as error:
                raise TableError(f"{path}:{number}: {error}") from None
    names = [row.name for row in rows]
    if twice := {name for name in names if names.count(name) > 1}:
        raise TableError(f"{path}: more than one row for {', '.join(sorted(twice))}")
    return rows


def write(path: Path, text: str) -> None:
    """Writes the file, unless it has this text already. So what depends on the file is not built again."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def _row(line: str) -> Collective:
    found = _ROW.fullmatch(line)
    if not found:
        raise ValueError(f"no row: {line}")
    traits = found["traits"].split(",")
    if found["bytes"] not in BYTES or not set(traits) <= set(TRAITS):
        raise ValueError(f"{found['name']}: bytes are one of {BYTES}, traits some of {TRAITS}")
    if "tune" in traits and found["shape"] == "-":
        raise ValueError(f"{found['name']}: what the benchmark does not have cannot be tuned")
    size = re.fullmatch(r"(\d+)K", found["least"])
    if (size is None) != (found["bytes"] == "-"):
        raise ValueError(
            f"{found['name']}: the switch-over is a number of KiB such as 64K, or - without data"
        )
    return Collective(
        found["name"],
        found["bytes"],
        int(size[1]) << 10 if size else 0,
        frozenset(traits) - {"-"},
        None if found["shape"] == "-" else found["shape"],
        found["parameters"],
    )
