"""The commands of docs/tutorial.md run, in their order, and print lines like those that the page shows.

Numbers may differ, and so may what depends on the machine. The program is the page's, with fewer steps. The
commands that start many runs are left to the long tests, which set OFFPATH_TEST_ALL.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from conftest import SOURCE_ROOT, environment

PAGE = (SOURCE_ROOT / "docs/tutorial.md").read_text()
# The page's program takes about a second; this is a tenth.
SHORTER = {"steps = 20": "steps = 4", "work = 8000000": "work = 4000000"}
LONG = re.compile(r"offpath (?:lab compare|lab advise|report)|--trace")
# Warnings about cores come on machines with few of them, or with other work.
MAY_LACK = re.compile(r"\[OFP-0813\]|^The machine was not idle|^┡")


def commands() -> list[tuple[str, list[str]]]:
    """Each command of the page, and the lines shown below it."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def form(line: str) -> str:
    """The line without what differs between runs: numbers and their units, columns' widths, findings."""
    line = re.sub(r"[+-]?\d+(?:\.\d+)?(?: ?(?:[KMG]i?B|B|[mnµu]?s|%)(?![\w]))?", "#", line)
    line = re.sub(r"; host ranks on .*?;|; host ranks on .*", ";", line)
    line = re.sub(r"\b(?:faster|slower|no difference)\b.*|\b(?:less|more) than host\b.*", "...", line)
    return re.sub(r"[━ ]+", " ", line).strip()


def unlike(shown: list[str], printed: list[str]) -> list[str]:
    """The shown lines that are not among the printed ones, in their order."""
    rest = iter([form(line) for line in printed])
    return [
        line
        for line in shown
        if line != "..." and not MAY_LACK.search(line) and not any(form(line) == one for one in rest)
    ]


@pytest.fixture
def place(build, namespaces, tmp_path) -> Path:
    """A directory like the source tree, as far as the commands see it."""
    (tmp_path / "build").symlink_to(build.root)
    (tmp_path / "examples").mkdir()
    program = (SOURCE_ROOT / "examples/overlap.c").read_text()
    for old, new in SHORTER.items():
        assert old in program
        program = program.replace(old, new)
    (tmp_path / "examples/overlap.c").write_text(program)
    return tmp_path


def test_every_command_prints_what_the_page_shows(place):
    variables = environment(
        OMPI_ALLOW_RUN_AS_ROOT="1",
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
        OMPI_MCA_rmaps_base_oversubscribe="1",
        OMPI_MCA_mpi_yield_when_idle="1",
    )
    everything = bool(os.environ.get("OFFPATH_TEST_ALL"))
    wrong = []
    for command, shown in commands():
        if LONG.search(command) and not everything:
            continue
        # Two runs show the form as well as five.
        done = subprocess.run(
            ["sh", "-c", command.replace("--runs 5", "--runs 2")],
            cwd=place,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        if done.returncode != 0 or (missing := unlike(shown, done.stdout.splitlines())):
            lines = "" if done.returncode else "\n".join(missing)
            wrong.append(f"$ {command}\nexit code {done.returncode}; lacks:\n{lines}\n{done.stdout}")
    assert not wrong, "\n".join(wrong)
    assert not everything or (place / "report.html").stat().st_size > 0


def test_lines_are_compared_in_form():
    shown = ["offpath: offloaded 20 of 20 collectives (80.0 MiB); device back end cma"]
    assert not unlike(shown, ["x", "offpath: offloaded 4 of 4 collectives (1.5 GiB); device back end cma"])
    assert unlike(shown, ["offpath: offloaded 4 of 4 messages (1.5 GiB); device back end cma"]) == shown
    assert unlike(["a 1", "...", "b 2"], ["b 1", "a 2"]) == ["b 2"]
    assert not unlike(["│ total_s │ 53.70 ms │ 0.628 │"], ["│ total_s  │   1.2 s │ 1.1 │"])
