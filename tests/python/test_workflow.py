"""The workflow of GitHub runs what the tree has, and its commands can be run without GitHub."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from conftest import SOURCE_ROOT

WORKFLOW = SOURCE_ROOT / ".github/workflows/ci.yml"
# Programs of the image, or of the packages that the first step installs.
PROGRAMS = {"apt-get", "git"}
HEAD = "defaults: {run: {shell: bash}}\njobs:\n  job:\n    runs-on: here\n"


def load() -> dict[str, Any]:
    return YAML(typ="safe", pure=True).load(WORKFLOW)


def commands(text: str) -> list[list[str]]:
    """The words of each command of a shell script that has simple commands only."""
    return [words for line in text.splitlines() if (words := shlex.split(line, comments=True))]


def runs() -> list[str]:
    return [step["run"] for job in load()["jobs"].values() for step in job["steps"] if "run" in step]


def absent(text: str) -> list[str]:
    """The programs, scripts and make targets in a step's commands that are not there."""
    rules = re.findall(r"^([\w. -]+):(?!=)", (SOURCE_ROOT / "Makefile").read_text(), re.MULTILINE)
    targets = {target for rule in rules for target in rule.split()} - {".PHONY"}
    found = []
    for program, *words in commands(text):
        if program == "make":
            found += [word for word in words if "=" not in word and word not in targets]
        elif program not in PROGRAMS and not ("/" in program and (SOURCE_ROOT / program).is_file()):
            found.append(program)
    return found


def printed(*arguments: object) -> subprocess.CompletedProcess[str]:
    script = SOURCE_ROOT / "scripts/workflow_steps.py"
    return subprocess.run(
        [sys.executable, script, *map(str, arguments)], capture_output=True, text=True, check=False
    )


def test_the_steps_name_what_is_there() -> None:
    assert runs()
    assert [absent(run) for run in runs()] == [[] for _ in runs()]


def test_a_step_that_names_what_is_absent_is_found() -> None:
    text = "make test nothing\n# a comment\nscripts/nothing.sh\nscripts/lint.sh\ncurl example.org\n"
    assert absent(text) == ["nothing", "scripts/nothing.sh", "curl"]


def test_the_workflow_covers_what_continuous_integration_runs() -> None:
    done = [command for run in runs() for command in commands(run)]
    # A variable narrows what a command runs.
    asked = [
        [word for word in command if "=" not in word]
        for command in commands((SOURCE_ROOT / ".ci/run").read_text())
        if command[0] not in ("set", "cd")
    ]
    assert asked
    assert [command for command in asked if command not in done] == []


def test_it_may_only_read_and_uses_one_pinned_action() -> None:
    workflow = load()
    assert workflow["permissions"] == {"contents": "read"}
    assert "secrets." not in WORKFLOW.read_text()
    for job in workflow["jobs"].values():
        assert "permissions" not in job
        used = [step["uses"] for step in job["steps"] if "uses" in step]
        assert len(used) == 1
        assert re.fullmatch(r"actions/checkout@[0-9a-f]{40}", used[0])


def test_every_job_can_be_printed() -> None:
    for name, job in load()["jobs"].items():
        done = printed(name)
        assert done.returncode == 0, done.stderr
        assert subprocess.run(["bash", "-n"], input=done.stdout, text=True, check=False).returncode == 0
        places = [done.stdout.index(step["run"].strip()) for step in job["steps"] if "run" in step]
        assert places == sorted(places)


def test_the_printed_script_runs_the_steps_until_one_fails(tmp_path: Path) -> None:
    workflow = tmp_path / "workflow.yml"
    workflow.write_text(
        HEAD
        + """
    env: {FIRST: a b}
    steps:
      - uses: actions/checkout@v1
      - name: "it's one"
        run: |
          echo "$FIRST$SECOND"
          cat <<END
            $CI
          END
        env: {SECOND: c}
      - run: basename "$PWD" && echo "$SECOND"
        working-directory: below
      - run: |
          false
          echo never
      - run: echo never
"""
    )
    script = printed("job", workflow)
    assert script.returncode == 0, script.stderr
    done = subprocess.run(
        ["bash", "-c", script.stdout],
        cwd=tmp_path,
        env={**os.environ, "CHECKOUT": "mkdir below"},
        capture_output=True,
        text=True,
    )
    said = ["== it's one", "a bc", "  true", '== basename "$PWD" && echo "$SECOND"', "below", "", "== false"]
    assert done.stdout.splitlines() == said
    assert done.returncode == 1


def test_what_cannot_be_printed_is_named(tmp_path: Path) -> None:
    workflow = tmp_path / "workflow.yml"
    for steps, problem in {
        "[{run: 'echo ${{ github.ref }}'}]": "an expression",
        "[{run: 'true', if: 'false'}]": "a step has if",
        "[{uses: actions/cache@v1}]": "a step uses actions/cache@v1",
        "[{run: 'true', shell: python}]": "a step has shell",
        "[]\n    strategy: {}": "job job has strategy",
    }.items():
        workflow.write_text(f"{HEAD}    steps: {steps}\n")
        done = printed("job", workflow)
        assert done.returncode == 1
        assert problem in done.stderr
    assert "no job other" in printed("other", workflow).stderr
