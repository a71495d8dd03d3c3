"""What a program reports about its own run: a JSON object on the last line of its output."""

import json
import math
import re

WALL = "wall_s"  # of a whole job, measured by the process that starts it

# A number whose name contains one of these units is a measurement, which differs from run to run. Any other
# number is a result.
_UNIT = re.compile(
    r"(_s|_ms|_us|_ns|_percent|_bps|_per_s|_gflops|_mflops|gflops|_ratio|_seconds|speedup|_per_second|_units)$",
    re.IGNORECASE,
)
_SECONDS = re.compile(r"(_s|_seconds| \[s\])$")


def last_json_object(stdout: str) -> dict | None:
    """The object on the last line that is not empty. None if that line is not a JSON object."""
    lines = stdout.strip().splitlines()
    if not lines or not lines[-1].lstrip().startswith("{"):
        return None
    try:
        value = json.loads(lines[-1])
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def is_measurement(name: str) -> bool:
    return bool(_UNIT.search(name))


def is_time(name: str) -> bool:
    return bool(_SECONDS.search(name)) and not name.lower().endswith("_per_s")


def measurements(report: dict | None) -> dict[str, float]:
    return {k: float(v) for k, v in (report or {}).items() if _is_number(v) and is_measurement(k)}


def results(report: dict | None) -> dict:
    return {k: v for k, v in (report or {}).items() if not (_is_number(v) and is_measurement(k))}


def agree(a, b) -> bool:
    """Whether the values are equal. Floating-point numbers may differ by rounding, which depends on the order
    of sums."""
    if isinstance(a, float) or isinstance(b, float):
        return _is_number(a) and _is_number(b) and math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9)
    return a == b


def plain_output(stdout: str) -> list[str]:
    """The other lines, in the order printed."""
    lines = stdout.strip().splitlines()
    if last_json_object(stdout) is not None:
        lines = lines[:-1]
    return [line.rstrip() for line in lines]


def _is_number(value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
