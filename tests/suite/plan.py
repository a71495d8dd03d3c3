"""Which tests there are: those that a build registered with ctest, and the files of Python tests."""

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from suite.case import Test

ROOT = Path(__file__).resolve().parents[2]
SLOTS_OF_CORE = 4
# What `make test` leaves to `make test-long`, and what to `make test-all`: that, and tests of other MPIs.
LONG, REST = "long", "rest"
_OTHER_MPI = re.compile(r"(^|\.)(mpich|abi)(\.|$)")
_MARK = "mark.other_mpi"  # of cases in files of the command


def compiled(build: Path) -> list[tuple[Test, frozenset[str]]]:
    """The tests that ctest knows in `build`, with their labels."""
    said = subprocess.run(
        ["ctest", "--test-dir", str(build), "--show-only=json-v1"], capture_output=True, text=True, check=True
    )
    return [_of_ctest(entry, build) for entry in json.loads(said.stdout)["tests"]]


def _of_ctest(entry: dict, build: Path) -> tuple[Test, frozenset[str]]:
    properties = {each["name"]: each["value"] for each in entry.get("properties", [])}
    labels = frozenset(properties.get("LABELS", []))
    name = entry["name"]
    environment = dict(pair.partition("=")[::2] for pair in properties.get("ENVIRONMENT", []))
    # A test whose program was not built has no command. It fails then.
    command = tuple(entry.get("command") or ("false", "its program was not built"))
    test = Test(
        name=name,
        part=part_of(name, labels),
        command=command,
        alone=f"make one TEST={shlex.quote('^' + re.escape(name) + '$')}",
        environment=environment,
        directory=properties.get("WORKING_DIRECTORY", str(build)),
        limit_s=float(properties.get("TIMEOUT", 300)),
        skip_code=_first_number(properties.get("SKIP_RETURN_CODE")),
        says="|".join(properties["PASS_REGULAR_EXPRESSION"])
        if "PASS_REGULAR_EXPRESSION" in properties
        else None,
        locks=tuple(properties.get("RESOURCE_LOCK", [])),
        slots=int(properties.get("PROCESSORS", 1)),
    )
    return test, labels


def cases(build: Path, name: str) -> list[Test]:
    """The cases whose names contain `name`, of GoogleTest programs that are one test each."""
    found = []
    for test, labels in compiled(build):
        if "unit" not in labels or len(test.command) != 1 or not Path(test.command[0]).exists():
            continue
        program, chosen = test.command[0], f"--gtest_filter=*{name}*"
        listed = subprocess.run([program, "--gtest_list_tests", chosen], capture_output=True, text=True)
        if listed.returncode == 0 and "\n  " in listed.stdout:
            found.append(replace(test, command=(program, chosen), alone=f"{program} '{chosen}'"))
    return found


def _first_number(value: object) -> int | None:
    return int(value[0]) if isinstance(value, list) and value else int(str(value)) if value else None


def part_of(name: str, labels: frozenset[str]) -> str:
    """The part of the suite that a test belongs to, for the table of times."""
    if "mpi" in labels:
        return "MPI"
    for label, part in (
        ("shmem", "OpenSHMEM"),
        ("openmp", "OpenMP"),
        ("client", "C API"),
        ("package", "packages"),
    ):
        if label in labels:
            return part
    return "units"


def command_files(
    build: Path, patterns: list[str] | None = None, other_mpis: bool | None = None
) -> list[Test]:
    """The files of tests of the offpath command, or what `patterns` name (FILE[::CASE]): all cases, or only
    those with (`other_mpis`) or without another MPI."""
    names = patterns or sorted(
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests/python").glob("test_*.py")
        if not other_mpis or _MARK in path.read_text()
    )
    chosen = () if other_mpis is None else ("-m", "other_mpi" if other_mpis else "not other_mpi")
    return [
        Test(
            name=name,
            part="command",
            command=(
                *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short"),
                *chosen,
                name,
            ),
            alone=f"make one TEST={shlex.quote(name)}",
            # A variable of the user's shell would lead to another tree.
            environment={"OFFPATH_BUILD": str(build)} if "OFFPATH_BUILD" in os.environ else {},
            directory=str(ROOT),
            limit_s=1200.0,
            slots=SLOTS_OF_CORE - 1,
            pytest=True,
        )
        for name in names
    ]


def wanted(name: str, labels: frozenset[str], what: str) -> bool:
    """Whether the set `what` (test, rest, units, long) has the test `name` with these labels."""
    if what == "units":
        return "unit" in labels and not labels & {LONG, "client"}
    if what == "long" or LONG in labels:
        return what == "long" and LONG in labels
    return (REST in labels or _OTHER_MPI.search(name) is not None) == (what == "rest")


def checks() -> list[Test]:
    """What looks at the sources alone."""
    return [
        Test(
            name="lint",
            part="lint",
            command=("scripts/lint.sh",),
            alone="make lint",
            directory=str(ROOT),
            slots=SLOTS_OF_CORE,
        )
    ]
