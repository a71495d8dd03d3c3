"""The suite runs each test by itself, knows what it cost, and says what was skipped and what failed."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import SOURCE_ROOT, traces

SPIN = "import time; end = time.process_time() + 0.3\\nwhile time.process_time() < end: pass"
# Seconds that no other command sleeps.
LONG = f"1000.{os.getpid()}"
TESTS = f"""
add_test(fine sh -c "test -n \\"$TMPDIR\\" && test -z \\"$(ls -A \\"$TMPDIR\\")\\" && echo x >$TMPDIR/mine")
add_test(lost sh -c "echo this is why; exit 3")
add_test(lacking sh -c "echo 'run.sh: skipped: no right to do it'; echo more; exit 77")
add_test(silent sh -c "echo more; exit 77")
add_test(refuses sh -c "echo 'four is not in range'; exit 1")
add_test(gtest sh -c "printf '[ RUN ] A.B\\\\nfile.cpp:3: Skipped\\\\nthis kernel has none\\\\n\\\\n\
[  SKIPPED ] A.B (0 ms)\\\\n[       OK ] A.C (7 ms)\\\\n'")
add_test(leaves sh -c "sleep {LONG} &")
add_test(hangs sh -c "sleep {LONG}")
add_test(orphan sh -c "setsid {sys.executable} -c '{SPIN}' & sleep 0.1")
add_test(long.one false)
add_test(mpich.one false)
set_tests_properties(lacking silent PROPERTIES SKIP_RETURN_CODE 77)
set_tests_properties(refuses PROPERTIES PASS_REGULAR_EXPRESSION "not in range")
set_tests_properties(hangs PROPERTIES TIMEOUT 1)
set_tests_properties(long.one PROPERTIES LABELS long)
"""


def suite(build, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "suite", str(build), "--only", "compiled", *arguments],
        cwd=SOURCE_ROOT / "tests",
        capture_output=True,
        text=True,
        timeout=180,
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    build = tmp_path_factory.mktemp("build")
    (build / "CTestTestfile.cmake").write_text(TESTS)
    done = suite(build)
    results = json.loads((build / "Testing/results.json").read_text())["tests"]
    return done, {result["name"]: result for result in results}, build


def test_what_failed_is_said_at_once_and_again_at_the_end(run):
    done, results, _ = run
    assert done.returncode == 1
    assert "-- lost FAILED: ended with 3\nthis is why\n" in done.stdout
    ours = done.stdout.partition("\nfailed:\n")[2]
    assert "  lost: ended with 3\n    make one TEST='^lost$'\n" in ours
    assert {name for name, result in results.items() if result["outcome"] == "failed"} == {
        "lost",
        "silent",
        "leaves",
        "hangs",
    }
    assert done.stdout.splitlines()[-1] == "4 passed, 4 failed, 2 skipped"


def test_skipped_tests_and_cases_are_counted_by_reason(run):
    _, results, _ = run
    table = run[0].stdout.partition("\nskipped:\n")[2].partition("\n\n")[0]
    assert sorted(table.split("\n")) == ["     1  no right to do it", "     1  this kernel has none"]
    assert results["gtest"]["outcome"] == "passed"
    assert results["silent"]["why"] == "ended with 77, which skips, and said no reason"


def test_a_test_leaves_no_process(run):
    _, results, _ = run
    assert (
        "left processes running" in results["leaves"]["why"] and f"sleep {LONG}" in results["leaves"]["why"]
    )
    assert results["hangs"]["why"] == "took longer than 1 s"
    assert not traces(LONG)


@pytest.mark.skipif(shutil.which("gdb") is None, reason="there is no debugger")
def test_the_stacks_of_a_test_that_hangs_are_shown(run):
    output = run[0].stdout.partition("-- hangs FAILED")[2].partition("\n-- ")[0]
    assert re.search(r"suite: idle after (.*\n)+\d+ sleep\n(  .*\n)*  #\d .*nanosleep", output), output


def test_the_cost_has_what_a_test_did_not_wait_for(run):
    _, results, _ = run
    assert results["orphan"]["outcome"] == "passed" and results["orphan"]["cpu_s"] >= 0.3


def test_other_sets_of_tests_are_left_out_unless_asked_for(run):
    _, results, build = run
    assert not {"long.one", "mpich.one"} & set(results)
    assert "mpich.one FAILED" in suite(build, "--set", "rest").stdout
    assert "long.one FAILED" in suite(build, "-R", "^long").stdout
    nothing = suite(build, "-R", "nowhere")
    assert nothing.returncode == 2 and "no test" in nothing.stderr
    nowhere = suite(build / "nowhere")
    assert nowhere.returncode == 2 and "no configured build" in nowhere.stderr
