"""`offpath info`: what the device software on this machine can do."""

import json as jsonlib
import subprocess
from typing import Annotated

from rich.table import Table

import typer

from offpath import console
from offpath.artifacts import find_artifacts
from offpath.errors import OffpathError


def info(json: Annotated[bool, typer.Option("--json", help="Print the JSON that offpathd --info gives.")] = False) -> None:
    """Shows devices, memory back ends, transports and progress guarantees of this machine, as offpathd finds them."""
    found = query()
    if json:
        print(jsonlib.dumps(found, indent=2))
        return
    for name, value in found.items():
        if isinstance(value, (dict, list)) and value:
            console.out.print(f"[bold]{_words(name)}[/bold]")
            console.out.print(_table(value))
        else:
            console.out.print(f"[bold]{_words(name)}[/bold]: {_text(value)}")


def query() -> dict:
    daemon = find_artifacts().daemon
    try:
        done = subprocess.run([str(daemon), "--info"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OffpathError(f"{daemon} --info failed: {error}") from error
    try:
        found = jsonlib.loads(done.stdout)
    except ValueError:
        found = None
    if done.returncode != 0 or not isinstance(found, dict):
        raise OffpathError(f"{daemon} --info failed with code {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
    return found


def _table(value: dict | list) -> Table:
    """A list of objects as one row each; an object as name and value."""
    if isinstance(value, list) and all(isinstance(entry, dict) for entry in value):
        columns = list(dict.fromkeys(key for entry in value for key in entry))
        table = Table(*map(_words, columns))
        for entry in value:
            table.add_row(*(_text(entry.get(column)) for column in columns))
        return table
    table = Table(show_header=False)
    if isinstance(value, dict) and all(isinstance(entry, dict) for entry in value.values()):
        columns = list(dict.fromkeys(key for entry in value.values() for key in entry))
        table = Table("", *map(_words, columns))
        for name, entry in value.items():
            table.add_row(_words(name), *(_text(entry.get(column)) for column in columns))
        return table
    for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
        table.add_row(*([_words(str(key))] if isinstance(value, dict) else []), _text(entry))
    return table


def _text(value) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{_words(key)}: {_text(entry)}" for key, entry in value.items())
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return console.escape(str(value))


def _words(name: str) -> str:
    return name.replace("_", " ")
