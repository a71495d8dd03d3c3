#!/usr/bin/env python3
"""What a run of the tests leaves unsaid: which tests were the slowest, which needed a second try, and
which parts were skipped and why.

usage: test-report.py [--failed] OUTPUT [LASTTEST]
  --failed  some tests failed
  OUTPUT    everything that scripts/test.sh printed: of ctest, of tests/aarch64/run.sh and of pytest -rs
  LASTTEST  ctest's own log, Testing/Temporary/LastTest.log, which has the reasons of tests that ctest only
  calls skipped
"""

import re
import sys
from collections import Counter
from pathlib import Path

_CTEST = re.compile(
    r"^\s*(?:\d+/\d+ )?Test +#\d+: (\S+) \.*\s*(?:\*+)?(Passed|Failed|Skipped|Timeout|Exception|Not Run)",
    re.MULTILINE,
)
_SECONDS = re.compile(r"^\s*(?:\d+/\d+ )?Test +#\d+: (\S+) \.*\s*\S+\s+([0-9.]+) sec", re.MULTILINE)
_DURATION = re.compile(r"^([0-9.]+)s call +(\S+)", re.MULTILINE)
_AGAIN = re.compile(r"^again: (\S+)$", re.MULTILINE)
_GTEST = re.compile(r": Skipped\n(.+)\n")
_SAID = re.compile(r"skipped:\s*(.+)", re.IGNORECASE)
_PYTEST = re.compile(r"^SKIPPED \[(\d+)\] \S+: (.+)$", re.MULTILINE)
_AARCH64 = re.compile(r"^aarch64: skipped: (?:(\d+) of them: )?(.+)$", re.MULTILINE)
_LOGGED = re.compile(
    r"^\d+/\d+ Test: (\S+)\n.*?^Output:\n-+\n(.*?)<end of output>$", re.MULTILINE | re.DOTALL
)


def second_tries(output: str) -> list[str]:
    """Tests that failed and then passed."""
    failed: dict[str, None] = {}
    passed = set()
    for name, result in _CTEST.findall(output):
        if result == "Passed":
            passed.add(name)
        elif result != "Skipped":
            failed[name] = None
    return [name for name in failed if name in passed] + _AGAIN.findall(output)


def slowest(output: str, number: int = 10) -> list[tuple[str, float]]:
    """The slowest tests of ctest and of pytest --durations, with their seconds."""
    times = [(name, float(seconds)) for name, seconds in _SECONDS.findall(output)]
    times += [(name, float(seconds)) for seconds, name in _DURATION.findall(output)]
    return sorted(times, key=lambda each: -each[1])[:number]


def skipped(output: str, last_test: str = "") -> Counter:
    """The number of skipped parts for each reason."""
    reasons: Counter = Counter()
    whole = {name for name, result in _CTEST.findall(output) if result == "Skipped"}
    told = set()
    for name, text in _LOGGED.findall(last_test):
        inside = _GTEST.findall(text)
        if name in told or not (inside or name in whole):
            continue
        told.add(name)
        reasons.update(map(_reason, inside) if inside else [_last_words(text)])
    reasons["no reason given"] += len(whole - told)
    for pattern in (_AARCH64, _PYTEST):
        for count, reason in pattern.findall(output):
            reasons[_reason(reason)] += int(count or 1)
    return +reasons


def _last_words(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = next((found[1] for line in lines if (found := _SAID.search(line))), None)
    return _reason(said or (lines[-1] if lines else "no reason given"))


def _reason(text: str) -> str:
    return re.sub(r"process \d+", "a process", text.strip())


def verdict(reasons: Counter, failed: bool = False) -> str:
    if not reasons:
        return "some tests FAILED" if failed else "all tests passed"
    return f"{'some tests FAILED' if failed else 'passed'}, {reasons.total()} skipped: " + "; ".join(
        f"{reason} ({count})" for reason, count in reasons.most_common()
    )


def main(arguments: list[str]) -> int:
    failed = "--failed" in arguments
    arguments = [word for word in arguments if word != "--failed"]
    output = Path(arguments[0]).read_text(errors="replace")
    log = Path(arguments[1]) if len(arguments) > 1 else None
    if times := slowest(output):
        print("== the slowest: " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in times))
    if tries := second_tries(output):
        print(f"== needed a second try: {' '.join(tries)}")
    print(
        "== "
        + verdict(skipped(output, log.read_text(errors="replace") if log and log.exists() else ""), failed)
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
