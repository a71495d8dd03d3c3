"""Reads what a test said: the cases of GoogleTest and pytest, and why something was skipped."""

import json
import re
from pathlib import Path

from suite.case import Outcome, Part, Result, Test

_GTEST_CASE = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] (\S+?)(?:, where .*)? \((\d+) ms\)$", re.MULTILINE)
_GTEST_SKIP = re.compile(r": Skipped\n(.+)\n")
_SAID = re.compile(r"skipped:[ \t]*(\S.*)", re.IGNORECASE)
_GTEST_OUTCOMES = {"OK": Outcome.PASSED, "FAILED": Outcome.FAILED, "SKIPPED": Outcome.SKIPPED}


def judge(test: Test, kept: dict, output: str, room: Path) -> Result:
    """The result of `test`, from its keeper's report, its output, and the files it left in `room`."""
    cases = _pytest_cases(room) if test.pytest else _gtest_cases(output)
    outcome, why = _outcome(test, kept, output, cases)
    return Result(test, outcome, kept["seconds"], kept["cpu_s"], output, why, cases, tuple(kept["left"]))


def _outcome(test: Test, kept: dict, output: str, cases: tuple[Part, ...]) -> tuple[Outcome, str]:
    code = kept["code"]
    if code is None:
        return Outcome.FAILED, f"took longer than {test.limit_s:g} s"
    if code == test.skip_code and code is not None:
        why = reason(output)
        return (
            (Outcome.SKIPPED, why)
            if why
            else (Outcome.FAILED, f"ended with {code}, which skips, and said no reason")
        )
    if test.says is not None:
        found = re.search(test.says, output) is not None
        return (Outcome.PASSED, "") if found else (Outcome.FAILED, f"did not say {test.says!r}")
    if code != 0:
        return Outcome.FAILED, f"ended with {code}" if code > 0 else f"ended by signal {-code}"
    if test.pytest and not cases:
        return Outcome.FAILED, "ran no case"
    if kept["left"]:
        return Outcome.FAILED, f"left processes running: {'; '.join(kept['left'])}"
    if cases and all(case.outcome is Outcome.SKIPPED for case in cases):
        return Outcome.SKIPPED, cases[0].said
    return Outcome.PASSED, ""


def reason(output: str) -> str:
    """Why a test was skipped, from its line "skipped: WHY". Empty if it has none."""
    said = _SAID.search(output)
    return neutral(said[1]) if said else ""


def neutral(text: str) -> str:
    """A reason without what differs from run to run, so that equal reasons count together."""
    return re.sub(r"process \d+", "a process", text.strip())


def _gtest_cases(output: str) -> tuple[Part, ...]:
    reasons = iter(_GTEST_SKIP.findall(output))
    cases = []
    for word, name, milliseconds in _GTEST_CASE.findall(output):
        outcome = _GTEST_OUTCOMES[word]
        said = neutral(next(reasons, "no reason given")) if outcome is Outcome.SKIPPED else ""
        cases.append(Part(name, outcome, int(milliseconds) / 1000, said=said))
    return tuple(cases)


def _pytest_cases(room: Path) -> tuple[Part, ...]:
    """The cases in the file that tests/python/conftest.py writes, a JSON object a line."""
    cases: dict[str, Part] = {}
    path = room / "cases.jsonl"
    for line in path.read_text().splitlines() if path.exists() else []:
        entry = json.loads(line)
        case = Part(
            entry["name"], Outcome(entry["outcome"]), entry["seconds"], entry["cpu_s"], neutral(entry["said"])
        )
        before = cases.get(case.name)
        if before is None or before.outcome is not Outcome.FAILED:
            cases[case.name] = case
    return tuple(cases.values())
