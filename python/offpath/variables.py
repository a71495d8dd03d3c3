"""The table of the environment variables that parts of offpath read (variables.json), its page in docs/, and
their values here. A test compares the table with what the sources read."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

_HEAD = """# Environment variables

After reading this page you know which environment variables offpath reads, and what they do.
`offpath info --variables` shows the same table with the values that are set. offpath names other
variables that begin with `OFFPATH_` when a job starts, because a misspelt one would do nothing.

This page is generated from `python/offpath/variables.json`: `python -m offpath.variables >
docs/variables.md`.

| variable | default | accepted | meaning | read by |
| --- | --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class Variable:
    name: str
    read_by: list[str]
    default: str
    values: str  # what is accepted, in words
    meaning: str
    page: str | None = None  # in docs/, with more about it
    check: str = ""  # what variable_checks.py accepts; empty: anything
    internal: bool = False  # set by offpath itself for its own processes


def table() -> list[Variable]:
    """All variables, sorted by name."""
    text = resources.files("offpath").joinpath("variables.json").read_text()
    return [Variable(**entry) for entry in json.loads(text)]


def values(environment: Mapping[str, str]) -> list[dict]:
    """A row for each variable that users set: its value, where that comes from, and its meaning."""
    return [
        {
            "name": variable.name,
            "value": environment.get(variable.name, variable.default),
            "from": "environment" if variable.name in environment else "default",
            "accepted": variable.values,
            "meaning": variable.meaning,
            "read_by": variable.read_by,
            "control_variable": variable.name.lower() if "MPI" in variable.read_by else None,
            "page": f"docs/{variable.page}" if variable.page else None,
        }
        for variable in table()
        if not variable.internal
    ]


def page() -> str:
    """The text of docs/variables.md."""
    rows = []
    for variable in table():
        if variable.internal:
            continue
        name = f"`{variable.name}`"
        if variable.page:
            name = f"[{name}]({variable.page})"
        cells = [name, variable.default, variable.values, variable.meaning, ", ".join(variable.read_by)]
        rows.append(f"| {' | '.join(cells)} |\n")
    return _HEAD + "".join(rows)


if __name__ == "__main__":
    print(page(), end="")
