"""The end of scripts/test.sh: which tests needed a second try, and which were skipped and why."""

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import SOURCE_ROOT

spec = importlib.util.spec_from_file_location("test_report", SOURCE_ROOT / "scripts/test-report.py")
report = importlib.util.module_from_spec(spec)
spec.loader.exec_module(report)

TESTS = """
add_test(flaky sh -c "test -e seen && exit 0; touch seen; exit 1")
add_test(lacking sh -c "echo 'run.sh: skipped: no right to do it'; echo more; exit 77")
add_test(gtest sh -c "printf '[ RUN ] A.B\\\\nfile.cpp:3: Skipped\\\\n\
this kernel has none\\\\n\\\\n[  SKIPPED ] A.B (0 ms)\\\\n'")
add_test(fine true)
add_test(lost sh -c "exit 1")
set_tests_properties(lacking PROPERTIES SKIP_RETURN_CODE 77)
set_tests_properties(gtest PROPERTIES SKIP_REGULAR_EXPRESSION "SKIPPED")
"""
OTHERS = """
SKIPPED [2] tests/python/test_lab.py:12: no emulated clusters here
aarch64: skipped: 3 of them: qemu has no such call
"""


def test_second_tries_and_skipped_parts_are_named(tmp_path):
    if shutil.which("ctest") is None:
        pytest.skip("there is no ctest")
    (tmp_path / "CTestTestfile.cmake").write_text(TESTS)
    ctest = ["ctest", "--test-dir", str(tmp_path), "--output-on-failure", "--repeat", "until-pass:2"]
    output = subprocess.run(
        ctest, capture_output=True, text=True, cwd=tmp_path, env=os.environ | {"HOME": str(tmp_path)}
    ).stdout
    reasons = report.skipped(output + OTHERS, (tmp_path / "Testing/Temporary/LastTest.log").read_text())
    assert report.second_tries(output) == ["flaky"], output
    expected = {
        "qemu has no such call": 3,
        "no emulated clusters here": 2,
        "no right to do it": 1,
        "this kernel has none": 1,
    }
    assert dict(reasons) == expected, output
    assert report.verdict(reasons).startswith("passed, 7 skipped: qemu has no such call (3); ")


def test_all_tests_passed_is_said_only_when_none_was_skipped():
    assert report.verdict(report.skipped("1/1 Test #1: a .....   Passed    0.02 sec\n")) == "all tests passed"
    assert (
        report.verdict(report.skipped("1/1 Test #1: a .....***Skipped   0.02 sec\n"))
        == "passed, 1 skipped: no reason given (1)"
    )
    assert report.verdict(report.skipped(""), failed=True) == "some tests FAILED"


def test_the_slowest_tests_are_named_of_either_kind():
    output = """
 1/3 Test #7: quick.np3 ................   Passed    0.20 sec
 2/3 Test #8: slow.np3 .................   Passed   12.35 sec
 3/3 Test #9: lost .....................***Failed    3.00 sec
============================= slowest 10 durations =============================
5.10s call     tests/python/test_lab.py::test_runs
0.90s setup    tests/python/test_lab.py::test_runs
"""
    python = "tests/python/test_lab.py::test_runs"
    assert report.slowest(output, 3) == [("slow.np3", 12.35), (python, 5.1), ("lost", 3.0)]


@pytest.mark.parametrize(("ci", "says"), [("true", ["test_one.py::test_flaky"]), ("", [])])
def test_a_failed_test_of_the_command_has_a_second_try_on_ci(tmp_path, ci, says):
    file = tmp_path / "test_one.py"
    file.write_text(
        "from pathlib import Path\n"
        "def test_flaky():\n"
        f"    seen = Path('{tmp_path}/seen')\n"
        "    before = seen.exists()\n"
        "    seen.touch()\n"
        "    assert before\n"
        "def test_fine():\n"
        f"    with open('{tmp_path}/fine', 'a') as runs:\n"
        "        runs.write('x')\n"
    )
    text = (SOURCE_ROOT / "scripts/test.sh").read_text()
    function = text[text.index("command_test() {") : text.index("export -f command_test")]
    done = subprocess.run(
        ["bash", "-c", f"{function}\ncommand_test {file}"],
        capture_output=True,
        text=True,
        cwd=SOURCE_ROOT,
        env=os.environ | {"CI": ci, "LOGS": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "failed").exists() == (not says)
    assert (tmp_path / "fine").read_text() == "x"
    log = (tmp_path / "test_one.py.log").read_text()
    assert [Path(name).name for name in report.second_tries(log)] == says
