"""What is run, and what came of it. Nothing here starts a process."""

from dataclasses import dataclass, field
from enum import Enum


class Outcome(Enum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Test:
    """One process that the suite starts: a test of ctest, or a file of Python tests.

    `slots` is its share of the machine, where a core has SLOTS_OF_CORE of them. `alone` is a command that
    runs it by itself. With `says`, a regular expression, the output decides and the exit code does not. Tests
    that name the same lock do not run at the same time.
    """

    name: str
    part: str
    command: tuple[str, ...]
    alone: str
    environment: dict[str, str] = field(default_factory=dict)
    directory: str | None = None
    limit_s: float = 300.0
    skip_code: int | None = None
    says: str | None = None
    locks: tuple[str, ...] = ()
    slots: int = 1
    pytest: bool = False


@dataclass(frozen=True)
class Part:
    """One case that a test reported by itself."""

    name: str
    outcome: Outcome
    seconds: float = 0.0
    cpu_s: float = 0.0
    said: str = ""


@dataclass(frozen=True)
class Result:
    """How a test ended. `cpu_s` covers all processes that it started, also those that it did not wait for."""

    test: Test
    outcome: Outcome
    seconds: float
    cpu_s: float
    output: str = ""
    why: str = ""
    cases: tuple[Part, ...] = ()
    left: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[Outcome, int]:
        """The number of cases by outcome; a test without cases counts as one."""
        outcomes = [case.outcome for case in self.cases] or [self.outcome]
        return {outcome: outcomes.count(outcome) for outcome in Outcome}
