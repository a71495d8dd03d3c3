"""Rows from stored results of measurements."""

import json
from collections.abc import Callable
from pathlib import Path

from offpath.errors import OffpathError
from offpath.reproduction.row import Row

STORED = Path(__file__).parent / "stored"


def read(name: str) -> dict:
    """A stored result: `command`, `environment` and `rows`."""
    path = STORED / f"{name}.json"
    try:
        found = json.loads(path.read_text())
        return {"command": str(found["command"]), "rows": list(found["rows"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OffpathError(f"{path}: not a stored result: {error!r}") from error


def names() -> list[str]:
    return sorted(path.stem for path in STORED.glob("*.json"))


def commands() -> dict[str, str]:
    return {name: read(name)["command"] for name in names()}


MAKERS: dict[str, Callable[[list[dict]], list[Row]]] = {}


def rows() -> list[Row]:
    return [row for name in names() for row in MAKERS[name](read(name)["rows"])]
