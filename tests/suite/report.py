"""What is printed and kept at the end of a run."""

import json
import os
from collections import Counter
from pathlib import Path

from suite.case import Outcome, Result
from suite.progress import totals

# A test that takes more CPU time needs a reason, in tests/suite/costly.txt.
COSTLY_CPU_S = 5.0


def costs(results: list[Result]) -> list[str]:
    """The CPU and elapsed time of each part, and the ten tests that took most of the CPU."""
    parts: dict[str, list[Result]] = {}
    for result in results:
        parts.setdefault(result.test.part, []).append(result)
    lines = [f"{'part':<12} {'tests':>6} {'cases':>6} {'CPU s':>8} {'elapsed s':>10}"]
    for part, members in sorted(parts.items()):
        cases = sum(sum(member.counts.values()) for member in members)
        cpu_s, seconds = sum(member.cpu_s for member in members), sum(member.seconds for member in members)
        lines.append(f"{part:<12} {len(members):>6} {cases:>6} {cpu_s:>8.1f} {seconds:>10.1f}")
    lines.append(f"{'all':<12} {len(results):>6} {'':>6} {sum(each.cpu_s for each in results):>8.1f}")
    lines += ["", "the ten that took most of the CPU:"]
    for result in sorted(results, key=lambda each: -each.cpu_s)[:10]:
        lines.append(f"{result.cpu_s:>8.1f} s of CPU, {result.seconds:>6.1f} s elapsed  {result.test.name}")
    return lines


def skips(results: list[Result]) -> Counter[str]:
    """The number of skipped tests and cases for each reason."""
    reasons: Counter[str] = Counter()
    for result in results:
        if result.cases:
            reasons.update(case.said for case in result.cases if case.outcome is Outcome.SKIPPED)
        elif result.outcome is Outcome.SKIPPED:
            reasons[result.why] += 1
    return reasons


def unexplained(results: list[Result], allowed: Path) -> list[str]:
    """The tests above COSTLY_CPU_S without a reason in the file `allowed` (NAME-PREFIX: REASON)."""
    lines = [line for line in allowed.read_text().splitlines() if line and not line.startswith("#")]
    prefixes = tuple(line.split(": ", 1)[0] for line in lines)
    return [
        result.test.name
        for result in results
        if result.cpu_s > COSTLY_CPU_S and not result.test.name.startswith(prefixes)
    ]


def show(results: list[Result], seconds: float, allowed: Path) -> None:
    """Prints the tables, then the failures again, then one line with the counts."""
    print("\n".join(costs(results)))
    if missing := unexplained(results, allowed):
        print(f"\nabove {COSTLY_CPU_S:g} s of CPU without a reason in {allowed.name}: {' '.join(missing)}")
    if reasons := skips(results):
        print("\nskipped:")
        for reason, number in reasons.most_common():
            print(f"{number:>6}  {reason}")
    if failed := [result for result in results if result.outcome is Outcome.FAILED]:
        print("\nfailed:")
        for result in failed:
            print(f"  {result.test.name}: {result.why}")
            cases = [case for case in result.cases if case.outcome is Outcome.FAILED]
            for case in cases:
                print(f"    {case.name}")
            print(f"    {result.test.alone}")
    counts = totals(results)
    print(f"\n{len(results)} tests in {seconds / 60:.1f} minutes")
    print(
        f"{counts[Outcome.PASSED]} passed, {counts[Outcome.FAILED]} failed, "
        f"{counts[Outcome.SKIPPED]} skipped",
        flush=True,
    )


def keep(results: list[Result], path: Path) -> None:
    """Keeps the results, for the next run's estimate of its time and for the table of what was tested."""
    entries = [
        {
            "name": each.test.name,
            "part": each.test.part,
            "outcome": each.outcome.value,
            "why": each.why,
            "seconds": round(each.seconds, 3),
            "cpu_s": round(each.cpu_s, 3),
            "cases": [
                {
                    "name": case.name,
                    "outcome": case.outcome.value,
                    "seconds": case.seconds,
                    "cpu_s": case.cpu_s,
                    "said": case.said,
                }
                for case in each.cases
            ],
        }
        for each in results
    ]
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.write_text(json.dumps({"tests": entries}, indent=1) + "\n")
    fresh.replace(path)


def expectations(path: Path) -> dict[str, float]:
    """The seconds that each test took in earlier runs."""
    try:
        entries = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return {name: float(seconds) for name, seconds in entries.items()}


def remember(results: list[Result], path: Path) -> None:
    """Adds what each test took to the file that `expectations` reads."""
    seconds = expectations(path) | {each.test.name: round(each.seconds, 2) for each in results}
    path.write_text(json.dumps(seconds, indent=1) + "\n")
