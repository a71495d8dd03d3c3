"""Checks of the models' arguments."""

import math

from offpath.codes import Code
from offpath.errors import OffpathError


def number(name: str, value: float, least: float = 0.0, most: float = math.inf) -> float:
    """`value`, if it is a finite number from `least` to `most`."""
    if not math.isfinite(value) or not least <= value <= most:
        bounds = f"from {least:g} to {most:g}" if math.isfinite(most) else f"of at least {least:g}"
        raise OffpathError(Code.OPTION, f"{name} {value:g} is out of range", f"use a number {bounds}")
    return value


def positive(name: str, value: float) -> float:
    if not math.isfinite(value) or value <= 0:
        raise OffpathError(Code.OPTION, f"{name} {value:g} is out of range", "use a number above 0")
    return value


def share(name: str, value: float) -> float:
    return number(name, value, 0.0, 1.0)


def count(name: str, value: int) -> int:
    """`value`, if it is at least 1."""
    if value < 1:
        raise OffpathError(Code.OPTION, f"{name} {value} is out of range", "use a whole number of at least 1")
    return value
