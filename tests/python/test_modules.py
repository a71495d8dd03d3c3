"""The modules of the command have no circular imports, even where they import late, and those that are slow
to load are loaded only where they are needed."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import offpath
from offpath import cli

FOLDER = Path(offpath.__file__).parent


def name_of(path: Path) -> str:
    parts = path.relative_to(FOLDER.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path, modules: set[str]) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            # A name may be a module of the package, or something defined in the package itself.
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in modules else node.module)
    return found & modules


def test_no_circles():
    paths = {name_of(path): path for path in FOLDER.rglob("*.py")}
    TopologicalSorter({name: imported(path, set(paths)) for name, path in paths.items()}).prepare()


def loaded_by(statement: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{statement}\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def test_command_starts_without_matplotlib():
    assert not loaded_by("import offpath.whole_cli") & {"matplotlib", "numpy"}


def test_a_job_starts_without_the_modules_of_other_commands():
    loaded = loaded_by("from offpath.cli import make_app; make_app(['run', '--', 'mpirun'])")
    assert "offpath.commands.run" in loaded
    assert {name for name in loaded if name.startswith("offpath.commands.")} == {
        "offpath.commands.run",
        "offpath.commands.job_options",
    }
    assert not loaded & {"offpath.lab.cluster", "offpath.sim", "offpath.stats", "rich", "secrets"}


@pytest.mark.parametrize(
    "words", [["run", "--", "mpirun", "-n", "2", "--", "a"], ["run", "mpirun", "-n", "2", "--", "a"]]
)
def test_a_job_without_options_starts_without_what_checks_them(words):
    statement = f"""
from offpath import cli, run_job

given = []
run_job.run = lambda job: given.append(job) or 0
sys.argv = ["offpath", *{words}]
assert cli.main() == 0
assert given == [["mpirun", "-n", "2", "--", "a"]], given
"""
    assert not loaded_by(statement) & {"typer", "rich", "pydantic", "offpath.commands.run"}


def test_a_line_on_stderr_needs_no_rich():
    assert "rich" not in loaded_by("from offpath import console; console.note('said')")


@pytest.mark.parametrize(
    "words", [[], ["run"], ["run", "--"], ["run", "--help"], ["run", "-v", "0", "a"], ["lab", "run", "a"]]
)
def test_every_other_command_line_is_parsed(words):
    assert not cli.job_without_options(words)
