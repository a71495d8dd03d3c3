"""Runs the tests of a build and says what they found, what they cost, and what was skipped.

python -m suite BUILD [--set test|rest|units|long] [-R NAME] [--only compiled|command] [--times N]

Run from the folder `tests`; BUILD is below the repository. Exits with 1 if a test failed, and with 2 if
there is no such build, or no test has the name.
"""

import argparse
import os
import re
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

from suite import plan, report
from suite.case import Outcome, Test
from suite.pool import Pool
from suite.progress import Progress


def main() -> int:
    options = _parser().parse_args()
    build = (plan.ROOT / options.build).resolve()
    if not (build / "CTestTestfile.cmake").is_file():
        print(f"suite: {build} is no configured build", file=sys.stderr)
        return 2
    # Open MPI refuses to run as root unless these are set. Tests are often run in containers.
    os.environ |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    _sanitizers(build)
    _resting(build, options)
    tests = chosen(build, options)
    if not tests:
        print(f"suite: no test of {build} has a name that matches {options.name}", file=sys.stderr)
        return 2
    records = build / "Testing"
    records.mkdir(exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    begin = time.monotonic()
    progress = Progress(len(tests) * options.times)
    slots = plan.SLOTS_OF_CORE * (os.cpu_count() or 1)
    pool = Pool(
        options.slots or slots,
        report.expectations(records / "seconds.json"),
        progress.finished,
        progress.tick,
    )
    try:
        for _ in range(options.times):
            pool.run(tests)
    except KeyboardInterrupt:
        print("suite: interrupted", file=sys.stderr)
        return 130
    finally:
        pool.close()
        progress.end()
    report.remember(progress.results, records / "seconds.json")
    report.keep(progress.results, records / "results.json")
    report.show(progress.results, time.monotonic() - begin, Path(__file__).with_name("costly.txt"))
    return 1 if any(each.outcome is Outcome.FAILED for each in progress.results) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="suite", description="Runs the tests of a build.")
    parser.add_argument("build")
    parser.add_argument("--set", dest="what", choices=("test", "rest", "units", "long"), default="test")
    parser.add_argument(
        "-R", dest="name", help="a regular expression for names, or tests/python/FILE[::CASE]"
    )
    parser.add_argument("--only", choices=("compiled", "command"))
    parser.add_argument("--times", type=int, default=1, help="how often each test runs")
    parser.add_argument("--slots", type=int, help="how much runs at the same time; a core has four slots")
    return parser


def chosen(build: Path, options: argparse.Namespace) -> list[Test]:
    """The tests that the command line asks for. A name finds tests of all sets."""
    tests: list[Test] = []
    if options.name and options.name.startswith("tests/python/"):
        return plan.command_files(build, [options.name])
    if options.only != "command":
        tests += [
            test
            for test, labels in plan.compiled(build)
            if options.name or plan.wanted(test.name, labels, options.what)
        ]
    if options.only != "compiled" and options.what in ("test", "rest") and not _is_sanitized(build):
        tests += plan.command_files(build, other_mpis=options.what == "rest")
        tests += plan.checks() if options.what == "test" else []
    if "tsan" in build.name:
        tests = [replace(test, limit_s=4 * test.limit_s) for test in tests]
    if options.name:
        tests = [test for test in tests if re.search(options.name, test.name)]
        tests = tests or plan.cases(build, options.name)
    return tests


def _is_sanitized(build: Path) -> bool:
    return "san" in build.name


def _sanitizers(build: Path) -> None:
    folder = plan.ROOT / "tests/sanitizers"
    for tool, ours in (
        # A crash ends a process as it does without the sanitizer: tests of devices look at the signal.
        ("ASAN", "detect_leaks=1:handle_segv=0:handle_abort=0"),
        ("LSAN", f"suppressions={folder}/lsan.supp:print_suppressions=0"),
        # Tests fork beside threads, and end processes that have some.
        (
            "TSAN",
            f"suppressions={folder}/tsan.supp:die_after_fork=0:report_thread_leaks=0:"
            "handle_segv=0:handle_abort=0",
        ),
    ):
        os.environ[f"{tool}_OPTIONS"] = f"{ours}:{os.environ.get(f'{tool}_OPTIONS', '')}"
    # UCX patches madvise(), which a thread still calls after the sanitizer has finished with it. offpath does
    # not need that hook.
    if "tsan" in build.name:
        os.environ["UCX_MEM_MMAP_HOOK_MODE"] = "none"


def _resting(build: Path, options: argparse.Namespace) -> None:
    """Ranks of tests rest while they wait (tests/support/resting_yield.cpp)."""
    library = build / "tests/libresting-yield.so"
    rests = options.what != "long" and library.exists() and not _is_sanitized(build)
    os.environ["RESTING_YIELD"] = str(library) if rests else ""


if __name__ == "__main__":
    sys.exit(main())
