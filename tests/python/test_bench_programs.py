"""`offpath bench programs`: its list, its verdicts, and one run of it."""

import json

import pytest

from offpath import bench_programs
from offpath.artifacts import Artifacts
from offpath.bench_programs import FASTER, SAME, SLOWER, UNCLEAR, Ran, chance_of_equals, compared, read
from offpath.errors import OffpathError

QUIET = [(1.0, 1.01), (1.02, 1.0), (1.0, 1.0), (0.99, 1.0), (1.0, 1.01)]


@pytest.mark.parametrize(
    "factor, verdict", [(1.0, SAME), (1.015, SAME), (1.2, SLOWER), (0.8, FASTER)], ids=str
)
def test_a_difference_counts_beyond_the_tolerance(factor, verdict):
    assert compared(QUIET, [factor * a for a, _ in QUIET])["verdict"] == verdict


def test_a_difference_within_the_noise_is_not_told_apart():
    noisy = [(1.0, 1.5), (1.4, 1.0), (1.0, 1.1), (1.3, 1.0), (1.0, 1.4)]
    found = compared(noisy, [1.05 * (a * b) ** 0.5 for a, b in noisy])
    assert found["ratio"] == pytest.approx(1.05) and found["verdict"] == UNCLEAR


def test_chances_are_those_of_exchanges_within_a_round():
    assert chance_of_equals([(1.0, 1.0)], [2.0]) == pytest.approx(1 / 3)
    assert chance_of_equals([(1.0, 1.0)] * 4, [2.0] * 4) == pytest.approx(1 / 81)
    assert chance_of_equals([(1.0, 2.0)] * 12, [1.5, 1.4] * 6) > 0.5


def test_a_machine_that_changes_its_speed_changes_no_ratio():
    found = compared([(1.0, 1.0), (2.0, 2.0), (4.0, 4.0)], [1.1, 2.2, 4.4])
    assert found["ratio"] == found["low"] == found["high"] == pytest.approx(1.1)


def test_the_list_has_programs_of_the_build_and_leaves_out_what_is_not_installed(build, tmp_path):
    found = read(bench_programs.LISTED, [], build)
    assert len([program for program in found if program.command[0].startswith(str(build.root))]) >= 12
    listed = tmp_path / "own.json"
    listed.write_text(json.dumps({"mine": {"command": "no-such-program", "optional": True}}))
    assert read(listed, [], Artifacts(tmp_path)) == []
    with pytest.raises(OffpathError, match="neither built nor in PATH"):
        read(listed, ["mine"], Artifacts(tmp_path))
    with pytest.raises(OffpathError, match="not listed"):
        read(listed, ["other"], Artifacts(tmp_path))
    for wrong in ("[]", '{"a": {"command": ""}}', '{"a": {"command": "true", "files": {"in": "text"}}}'):
        listed.write_text(wrong)
        with pytest.raises(OffpathError, match="no list of programs"):
            read(listed, [], Artifacts(tmp_path))


def test_a_program_of_the_working_directory_is_found_from_others(tmp_path, monkeypatch):
    own = tmp_path / "own"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for name in ("./own", str(own)):
        (tmp_path / "own.json").write_text(json.dumps({"mine": {"command": f"{name} --option"}}))
        (program,) = read(tmp_path / "own.json", [], Artifacts(tmp_path / "none"))
        assert program.command == [str(own), "--option"]


def test_first_runs_know_nothing_and_later_runs_know_one_signature():
    seen: dict[str, set] = {}

    def run(kind, program, signatures):
        seen.setdefault(kind, set()).add(signatures)
        assert (signatures.parent / "input").read_text() == "a\nb\n"
        return Ran(0, 1.0, '{"total_s": 0.5}', "")

    program = bench_programs.Program("p", "", ["true"], {"input": ["a", "b"]})
    (row,) = bench_programs.measure([program], run, 3)
    assert len(seen["first"]) == 3 and len(seen["later"]) == 1 and not seen["first"] & seen["later"]
    assert row["time"] == "total_s" and row["own"]["off_s"] == 0.5 and row["whole"]["off_s"] == 1.0


def test_a_program_runs_in_the_lab_and_without_it(offpath, tmp_path, namespaces):
    listed = tmp_path / "own.json"
    listed.write_text(json.dumps({"mine": {"command": "offpath-bench-programs cg --steps 5 --json -"}}))
    report, picture = tmp_path / "r.json", tmp_path / "r.png"
    alone = ["--nodes=1", "--ranks-per-node=2", "--no-namespaces", f"--plot={picture}"]
    for where in (["--nodes=2"], alone):
        done = offpath(
            "bench", "programs", *where, "--runs=2", f"--programs={listed}", f"--json={report}",
            OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        (row,) = json.loads(report.read_text())["rows"]
        assert row["time"] == "total_s" and len(row["own"]["runs"]["later"]) == 2
    assert picture.stat().st_size > 0


def test_a_program_that_fails_is_told(offpath, tmp_path):
    listed = tmp_path / "own.json"
    listed.write_text(json.dumps({"mine": {"command": "false"}}))
    done = offpath(
        "bench", "programs", "--nodes=1", "--no-namespaces", "--runs=2", f"--programs={listed}",
        OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
    )  # fmt: skip
    assert (
        done.returncode == 1 and "mine, off, run 0: code" in done.stderr and done.stderr.count(": code") == 1
    )
