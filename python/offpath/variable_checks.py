"""Checks the values of environment variables (variables.json) before a job starts, in one place.

The libraries check what they read, too, but each of them only when the job runs already. Values are accepted
here as there (src/base/environment.cpp).
"""

import os
import re
from collections.abc import Callable, Mapping

from offpath import collectives, variables
from offpath.codes import Code
from offpath.errors import OffpathError

_FLAG = {"on", "off", "yes", "no", "true", "false", "1", "0"}
_LISTS = {"default", "all", "blocking"}
_CPUS = re.compile(r"all|\d+(-\d+)?(,\d+(-\d+)?)*")


def check(environment: Mapping[str, str] = os.environ) -> None:
    """Raises OffpathError for the first value that is not accepted. Empty values count as unset."""
    given = {name: value for name, value in environment.items() if name.startswith("OFFPATH") and value}
    if not given:
        return
    for variable in variables.table():
        if variable.name in given and variable.check:
            check_one(variable, given[variable.name])


def check_one(variable: variables.Variable, value: str) -> None:
    """Raises OffpathError if the variable does not accept the value."""
    kind, *words = variable.check.split()
    wrong = _CHECKS[kind](value, words)
    if wrong is None:
        return
    raise OffpathError(
        Code.OPTION, f"{variable.name}={value}: {wrong or 'not accepted'}", _accepted(variable)
    )


def check_operations(text: str, name: str) -> None:
    """Raises OffpathError if `text` is no list of operations as in OFFPATH_OPS. `name`: where it stands."""
    if (wrong := _operations(text, [])) is not None:
        raise OffpathError(Code.OPTION, f"{name}: {wrong}", _known_operations())


def _accepted(variable: variables.Variable) -> str:
    return _known_operations() if variable.check == "operations" else f"use {variable.values}"


def _known_operations() -> str:
    names = ", ".join(row.op for row in collectives.read())
    return (
        f"use default, all, blocking, or some of {names}, joined by commas; each without its i: the blocking"
        " form"
    )


# Each returns None if the value is accepted, and else what is wrong, or "" if nothing more can be said.


def _flag(value: str, _: list[str]) -> str | None:
    return None if value in _FLAG else ""


def _words(value: str, words: list[str]) -> str | None:
    return None if value in words else ""


def _number(value: str, limits: list[str]) -> str | None:
    if not re.fullmatch(r"[0-9]+", value):
        return "not a whole number"
    least, most = (int(limit) for limit in limits or ("0", str(2**64 - 1)))
    return None if least <= int(value) <= most else "out of range"


def _seconds(value: str, _: list[str]) -> str | None:
    return None if re.fullmatch(r"\d+(\.\d*)?|\.\d+", value) else "not a number"


def _size(value: str, _: list[str]) -> str | None:
    return None if re.fullmatch(r"[0-9]+[kKmMgG]?", value) else "not a number of bytes, with K, M or G behind"


def _operations(value: str, _: list[str]) -> str | None:
    known = _LISTS | {name for row in collectives.read() for name in (row.op, row.name)}
    for word in value.split(","):
        if word not in known:
            return f"{word!r} is no operation"
    return None


def _cpus(value: str, _: list[str]) -> str | None:
    return None if _CPUS.fullmatch(value) else ""


def _places(value: str, _: list[str]) -> str | None:
    """One that is there is enough, as the program leaves the others out. Directories of other nodes cannot be
    looked at from here."""
    missing = [entry for entry in value.split(",") if "=" not in entry and "/" in entry]
    missing = [entry for entry in missing if not os.path.isdir(entry)]
    if len(missing) < len(value.split(",")):
        return None
    return f"the directory {missing[0]} is not there"


_CHECKS: dict[str, Callable[[str, list[str]], str | None]] = {
    "flag": _flag,
    "words": _words,
    "number": _number,
    "seconds": _seconds,
    "size": _size,
    "operations": _operations,
    "cpus": _cpus,
    "places": _places,
}
