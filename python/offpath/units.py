"""Converts rates, sizes and times to and from the way people write them. A parser that refuses a text says
what it accepts."""

import re
from collections.abc import Iterable

from offpath.codes import Code
from offpath.errors import OffpathError

_RATE_UNITS = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_SIZE_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
_TIME_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_NUMBER = r"(\d+(?:\.\d+)?)"


def parse_rate(text: str) -> int | None:
    """Returns bits per second for "1gbit", "2.5gbit" or "500mbit", and None for "unlimited"."""
    lowered = text.strip().lower()
    if lowered in ("unlimited", "none"):
        return None
    match = re.fullmatch(_NUMBER + r"\s*([kmg]?bit)(?:/s|ps)?", lowered)
    rate = round(float(match[1]) * _RATE_UNITS[match[2]]) if match else 0
    if rate < 10**5:
        raise OffpathError(
            Code.OPTION,
            f"link rate {text!r} is not understood",
            "write a number and a unit, such as 1gbit, 2.5gbit or 500mbit (at least 100kbit), or unlimited",
        )
    return rate


def format_rate(bits_per_second: int | None) -> str:
    if bits_per_second is None:
        return "unlimited"
    for unit in ("gbit", "mbit", "kbit"):
        if bits_per_second >= _RATE_UNITS[unit]:
            return f"{bits_per_second / _RATE_UNITS[unit]:g}{unit}"
    return f"{bits_per_second}bit"


def parse_size(text: str) -> int:
    """Returns bytes for "4096", "64K", "4M" or "1GiB". The units are powers of 1024."""
    match = re.fullmatch(_NUMBER + r"\s*([kmg]?)(?:i?b)?", text.strip().lower())
    size = float(match[1]) * _SIZE_UNITS[match[2]] if match else 0
    if size < 1 or size != int(size):
        raise OffpathError(
            Code.OPTION,
            f"size {text!r} is not understood",
            "write a whole number of bytes, such as 4096, 64K, 4M or 1G",
        )
    return int(size)


def format_size(size: int) -> str:
    for unit, name in ((2**30, "G"), (2**20, "M"), (2**10, "K")):
        if size >= unit:
            return f"{size / unit:.4g}{name}"
    return str(size)


def format_bytes(size: int) -> str:
    """An amount for people, such as "64 KiB"."""
    text = format_size(size)
    return f"{text[:-1]} {text[-1]}iB" if text[-1] in "KMG" else f"{text} B"


def count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def parse_sizes(text: str) -> list[int]:
    return [parse_size(part) for part in split_list(text, "sizes")]


def split_list(text: str, what: str) -> list[str]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise OffpathError(Code.OPTION, f"the list of {what} is empty", "separate the entries by commas")
    return parts


def split_known(text: str, what: str, known: Iterable[str]) -> list[str]:
    """The entries of a list, each of which must be known. `what`: one entry, such as "operation"."""
    names = split_list(text, f"{what}s")
    check_known(names, what, known)
    return names


def check_known(names: Iterable[str], what: str, known: Iterable[str]) -> None:
    known = tuple(known)
    for name in names:
        if name not in known:
            raise OffpathError(Code.OPTION, f"{what} {name!r} is not known", "use " + ", ".join(known))


def split_whole(text: str, what: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in split_list(text, what))
    except ValueError as error:
        raise OffpathError(
            Code.OPTION, f"{what} {text!r} is not understood", "write whole numbers, separated by commas"
        ) from error


def parse_duration(text: str) -> float:
    """Returns seconds for "50us", "1.5ms" or "2s"."""
    match = re.fullmatch(_NUMBER + r"\s*(us|ms|s)", text.strip().lower())
    if not match:
        raise OffpathError(
            Code.OPTION,
            f"time {text!r} is not understood",
            "write a number and a unit, such as 50us, 1ms or 2s",
        )
    return float(match[1]) * _TIME_UNITS[match[2]]


def format_seconds(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.3f} s"
    if seconds >= 1e-3:
        return f"{seconds * 1e3:.2f} ms"
    return f"{seconds * 1e6:.2f} us"


def parse_fraction(text: str) -> float:
    """Returns a share of one core for "0.5" or "50%": more than 0, at most 1."""
    match = re.fullmatch(_NUMBER + r"\s*(%?)", text.strip())
    value = float(match[1]) / (100 if match[2] else 1) if match else 0.0
    if not 0.01 <= value <= 1:
        raise OffpathError(
            Code.OPTION,
            f"device quota {text!r} is not understood",
            "write a share of one core between 0.01 and 1, such as 0.5 or 50%",
        )
    return value


def parse_assignments(pairs: list[str], option: str) -> dict[str, str]:
    """Returns {"K": "V"} for ["K=V"]."""
    values = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key):
            raise OffpathError(
                Code.OPTION, f"{option} {pair!r} is not understood", f"write {option} NAME=VALUE"
            )
        values[key] = value
    return values


def parse_cpus(text: str) -> list[int]:
    """Returns [0, 1, 2, 5] for "0-2,5", the kernel's list format."""
    cpus: set[int] = set()
    for part in split_list(text, "CPUs"):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if not match or int(match[2] or match[1]) < int(match[1]):
            raise OffpathError(
                Code.OPTION,
                f"CPU list {text!r} is not understood",
                "write numbers and ranges, such as 3 or 0-2,5",
            )
        cpus.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return sorted(cpus)


def format_cpus(cpus) -> str:
    """Returns the shortest text in the kernel's list format."""
    ranges: list[list[int]] = []
    for cpu in sorted(cpus):
        if ranges and ranges[-1][1] == cpu - 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)
