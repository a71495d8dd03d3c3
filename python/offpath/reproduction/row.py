"""One figure of a paper, and ours."""

import math
from dataclasses import dataclass
from enum import StrEnum


class Paper(StrEnum):
    MINIMD = "\"'Smarter' NICs for faster molecular dynamics\" (IPDPS 2022)"
    FRAMEWORK = '"A Novel Framework for Efficient Offloading" (MUG 2023, slides of the IPDPS 2023 paper)'
    ONE_SIDED = '"Effective and Efficient Offloading Designs for One-Sided Communication to SmartNICs"'
    TUTORIAL = '"Leveraging SmartNICs for HPC and Data Center Applications" (SC24 tutorial)'
    MANUAL = '"Offloading Halo Exchange Applications - MPI Manual Offloading" (BSC report, 2023)'


class Kind(StrEnum):
    MODEL = "model"
    SIMULATION = "simulated"
    MEASUREMENT = "measured"


@dataclass(frozen=True)
class Published:
    """What a paper says: a number (low == high), at least or at most one, or a range."""

    low: float
    high: float
    unit: str = ""

    @classmethod
    def exactly(cls, value: float, unit: str = "") -> "Published":
        return cls(value, value, unit)

    @classmethod
    def at_least(cls, value: float, unit: str = "") -> "Published":
        return cls(value, math.inf, unit)

    @classmethod
    def at_most(cls, value: float, unit: str = "") -> "Published":
        return cls(-math.inf, value, unit)

    def error(self, value: float) -> float:
        """How far `value` is outside, as a share of the nearer end; 0 inside."""
        if self.low <= value <= self.high:
            return 0.0
        end = self.low if value < self.low else self.high
        return value / end - 1

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.low:g} {self.unit}".rstrip()
        if math.isinf(self.low):
            return f"at most {self.high:g} {self.unit}".rstrip()
        if math.isinf(self.high):
            return f"at least {self.low:g} {self.unit}".rstrip()
        return f"{self.low:g} to {self.high:g} {self.unit}".rstrip()


@dataclass(frozen=True)
class Row:
    """`how` says what ours comes from: a command, or a formula of docs/models.md. `why` is the reason for a
    difference; it is needed where the error is above 20 %."""

    paper: Paper
    place: str
    what: str
    published: Published
    ours: float
    kind: Kind
    how: str
    why: str = ""

    @property
    def error(self) -> float:
        return self.published.error(self.ours)

    def as_json(self) -> dict:
        return {
            "paper": str(self.paper),
            "place": self.place,
            "what": self.what,
            "published": str(self.published),
            "published_low": None if math.isinf(self.published.low) else self.published.low,
            "published_high": None if math.isinf(self.published.high) else self.published.high,
            "unit": self.published.unit,
            "ours": self.ours,
            "kind": str(self.kind),
            "error": self.error,
            "how": self.how,
            "why": self.why,
        }


def number(value: float) -> str:
    """Three digits, which also hides small changes of the simulated engine."""
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def with_unit(value: float, unit: str) -> str:
    return f"{number(value)} {unit}".rstrip()
