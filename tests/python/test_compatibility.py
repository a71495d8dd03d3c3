"""The table of what offpath was tested with is what runs of the tests found, and the page is made from it."""

import importlib.util
import json
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
_SPEC = importlib.util.spec_from_file_location("compatibility", SOURCE / "scripts/compatibility.py")
compatibility = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(compatibility)


def test_results_are_counted_by_what_they_are_about():
    outcomes = {
        "mpi.rma_test.np2": "passed",
        "mpi.rma_test.np3": "failed",
        "mpich.rma_test.np2": "skipped",
        "engine": "passed",
        "World/Suite.Case/tcp": "passed",
    }
    tests = [{"name": name, "outcome": outcome} for name, outcome in outcomes.items()]
    assert compatibility.results(tests) == {
        "mpi": {"passed": 1, "failed": 1, "skipped": 0},
        "mpich": {"passed": 0, "failed": 0, "skipped": 1},
        "none": {"passed": 2, "failed": 0, "skipped": 0},
    }


def test_a_later_run_with_the_same_releases_replaces_a_row():
    row = dict.fromkeys(compatibility.KEY, "x") | {"passed": 1}
    other = row | {"ucx": "y"}
    assert compatibility.merged([row, other], [row | {"passed": 2}]) == [row | {"passed": 2}, other]


def test_the_releases_of_this_build_are_known(build):
    used = compatibility.versions(build.root)
    assert used["mpi"].startswith("Open MPI ") and "?" not in used["mpi"] + used["ucx"] + used["compiler"]


def test_the_page_is_made_from_the_table():
    rows = json.loads(compatibility.TABLE.read_text())
    assert rows and all(row["passed"] + row["failed"] > 0 for row in rows)
    assert compatibility.PAGE.read_text() == compatibility.page(rows)
