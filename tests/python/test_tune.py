"""The tuning table that `offpath tune` makes, and the switch for running jobs."""

import json
import os
import subprocess

import pytest

from conftest import command, environment
from offpath import bench, control, launch, overhead, tune, tuning_table
from offpath.artifacts import Artifacts
from offpath.errors import OffpathError
from offpath.lab import owner
from offpath.lab.cluster import LabSpec

LAUNCHER = [
    "mpirun",
    "--allow-run-as-root",
    "--oversubscribe",
    "--bind-to",
    "none",
    "--mca",
    "mpi_yield_when_idle",
    "1",
    "-n",
    "2",
]


def said(pure: float, overlap: float, ranks: int = 4, nodes: int = 2) -> dict:
    return {
        "ranks": ranks,
        "nodes": nodes,
        "verified": True,
        "rows": [{"bytes": 1024, "pure_s": pure, "overlap": overlap}],
    }


def test_rows_are_medians_and_sizes_those_that_the_front_end_decides_by():
    taken = {
        "host": [said(1, 0.1), said(3, 0.3), said(2, 0.2)],
        "device": [said(4, 0.9), said(5, 0.8), said(6, 1.0)],
    }
    (row,) = tune.rows("iallgather", taken)
    assert row == {
        "op": "iallgather",
        "ranks": 4,
        "nodes": 2,
        "bytes": 4096,
        "host": {"pure_s": 2, "overlap": 0.2},
        "device": {"pure_s": 5, "overlap": 0.9},
    }
    assert tune.rows("ialltoall", taken)[0]["bytes"] == 1024


def test_both_engines_run_in_turn_and_compute_as_long():
    calls = []

    def measure(engine, arguments):
        calls.append(
            (engine, arguments[arguments.index("--compute-s") + 1] if "--compute-s" in arguments else None)
        )
        return said(0.002 if engine == "host" else 0.001, 0.5)

    rows = tune.calibrate(tune.TuneSpec(["ibcast"], [1024], runs=2), measure)
    assert calls == [
        ("host", None),
        ("device", "0.002000000"),
        ("host", "0.002000000"),
        ("device", "0.002000000"),
    ]
    assert tuning_table.device_pays(rows[0])


def test_a_job_of_one_rank_is_refused():
    with pytest.raises(OffpathError, match="does not communicate"):
        tune.rows(
            "ibcast", {"host": [said(1, 0, ranks=1, nodes=1)], "device": [said(1, 0, ranks=1, nodes=1)]}
        )


def test_the_choice_that_is_shown_is_the_front_ends():
    def pays(host, device):
        return tuning_table.device_pays(
            {
                "host": dict(zip(("pure_s", "overlap"), host, strict=True)),
                "device": dict(zip(("pure_s", "overlap"), device, strict=True)),
            }
        )

    assert pays((0.010, 0.0), (0.010, 0.95)) and pays((0.010, 0.0), (0.0101, 0.95))
    assert not pays((0.010, 0.0), (0.0103, 0.95)) and not pays((0.010, 0.9), (0.010, 0.95))


def test_adding_keeps_other_shapes_and_replaces_the_same(tmp_path):
    def row(op, ranks, size):
        return {"op": op, "ranks": ranks, "nodes": 2, "bytes": size}

    old = tuning_table.make_table([row("ibcast", 2, 1), row("ibcast", 4, 1), row("ialltoall", 4, 1)], "there")
    new = tuning_table.make_table([row("ibcast", 4, 2)], "here")
    path = tmp_path / "deep" / "table.json"
    tuning_table.write(old, path)
    tuning_table.write(tuning_table.merge(tuning_table.read(path), new), path)
    merged = tuning_table.read(path)
    assert merged["rows"] == [row("ibcast", 2, 1), row("ialltoall", 4, 1), row("ibcast", 4, 2)]
    assert merged["measured"]["where"] == "here" and merged["earlier"]["where"] == "there"
    assert os.listdir(path.parent) == ["table.json"]


@pytest.mark.parametrize("text", ["{", "[]", '{"offpath_tuning": 2, "rows": []}', '{"offpath_tuning": 1}'])
def test_what_is_no_table_is_not_added_to(tmp_path, text):
    path = tmp_path / "table.json"
    path.write_text(text)
    with pytest.raises(OffpathError, match=str(path)):
        tuning_table.read(path)


def test_run_hands_the_users_table_to_the_ranks(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    chosen = launch.LaunchOptions(device_cpus=(1,))
    build = tmp_path / "build"
    for name in ("lib/liboffpath-mpi.so", "bin/offpathd"):
        (build / name).parent.mkdir(parents=True, exist_ok=True)
        (build / name).touch()
    variables = launch.rank_variables(Artifacts(build), tmp_path, chosen, {})
    assert "OFFPATH_TUNING" not in variables and variables["OFFPATH_CONTROL"] == str(tmp_path / "control")
    tuning_table.write(tuning_table.make_table([], "here"), tuning_table.default_table())
    assert launch.rank_variables(Artifacts(build), tmp_path, chosen, {})["OFFPATH_TUNING"] == str(
        tmp_path / "offpath" / "tuning.json"
    )
    assert (
        launch.rank_variables(Artifacts(build), tmp_path, chosen, {"OFFPATH_TUNING": "off"})["OFFPATH_TUNING"]
        == "off"
    )


def test_only_jobs_that_run_are_told(tmp_path):
    for name, mark in (("offpath-run-a", owner.mark()), ("offpath-run-b", "1-0"), ("other", owner.mark())):
        (tmp_path / name).mkdir()
        (tmp_path / name / "owner").write_text(mark)
    (job,) = control.running(tmp_path)
    control.tell(job.file, control.text_of("ops", "ibcast"))
    assert (tmp_path / "offpath-run-a" / "control").read_text() == "ops ibcast\n"


@pytest.mark.parametrize("state, ops", [("maybe", None), ("ops", None), ("on", "ibcast")])
def test_unknown_switches_are_refused(state, ops):
    with pytest.raises(OffpathError):
        control.text_of(state, ops)


def test_control_says_when_no_job_runs_and_writes_a_file_that_is_named(offpath, tmp_path):
    (tmp_path / "empty").mkdir()
    nothing = offpath("control", "off", TMPDIR=str(tmp_path / "empty"))
    assert nothing.returncode != 0 and "no job" in nothing.stderr
    file = tmp_path / "control"
    assert offpath("control", "off", "--file", str(file)).returncode == 0
    assert file.read_text() == "off\n"


def test_tune_refuses_what_it_cannot_measure(offpath, tmp_path):
    for arguments in (
        ["--ops", "isend"],
        ["--runs", "0"],
        ["--output", str(tmp_path)],
        ["--sizes", "1apple"],
    ):
        done = offpath("tune", *arguments)
        assert done.returncode != 0 and "offpath: error:" in done.stderr, arguments


def test_every_operation_that_tune_measures_by_default_is_one_of_the_benchmarks():
    assert set(tune.DEFAULT_OPERATIONS) <= set(bench.OPERATIONS)


def test_tune_on_a_real_launcher_writes_a_table_that_the_front_end_takes(offpath, tmp_path):
    table = tmp_path / "table.json"
    done = offpath(
        "tune",
        "--ops",
        "ibcast",
        "--sizes",
        "64K,256K",
        "--runs",
        "1",
        "--seconds",
        "0.01",
        "-o",
        str(table),
        "--",
        *LAUNCHER,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(table.read_text())["rows"]
    assert [(row["op"], row["ranks"], row["nodes"], row["bytes"]) for row in rows] == [
        ("ibcast", 2, 1, 65536),
        ("ibcast", 2, 1, 262144),
    ]
    program = str(launch_program())
    run = offpath(
        "run",
        "--",
        *LAUNCHER,
        program,
        "latency",
        "--op",
        "ibcast",
        "--bytes",
        "64K",
        "--iterations",
        "3",
        OFFPATH_TUNING=str(table),
        OFFPATH_EXPLAIN="1",
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert "the table for 2 ranks on 1 nodes: host" in run.stderr, run.stderr
    table.write_text("{")
    run = offpath(
        "run",
        "--",
        *LAUNCHER,
        program,
        "latency",
        "--op",
        "ibcast",
        "--bytes",
        "1M",
        "--iterations",
        "3",
        OFFPATH_TUNING=str(table),
        timeout=120,
    )
    assert (
        run.returncode == 0 and "the fixed switch-overs are used" in run.stderr and "offloaded" in run.stderr
    ), run.stderr


def launch_program():
    from offpath.artifacts import find_artifacts

    return find_artifacts().program(bench.PROGRAM)


def test_a_running_job_is_switched_by_its_control_file(tmp_path):
    file = tmp_path / "control"
    line = command(
        "run",
        "--",
        *LAUNCHER,
        str(launch_program()),
        "latency",
        "--op",
        "ibcast",
        "--bytes",
        "256K",
        "--iterations",
        "1000000",
    )
    job = subprocess.Popen(
        line,
        env=environment(OFFPATH_CONTROL=str(file), OFFPATH_AGREE_MS="10", OFFPATH_EXPLAIN="1"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        seen = []
        # Text that is in the file before the job explains its first call would count as an earlier job's.
        for wanted, text in (
            ("MPI_Ibcast on", None),
            ("no effect", "of f"),
            ("switched off", "off"),
            ("switched to", "on"),
        ):
            if text:
                control.tell(file, text)
            while wanted not in (read := job.stderr.readline()):
                assert read, "\n".join(seen)
                seen.append(read)
    finally:
        job.terminate()
        job.communicate(timeout=60)


def test_overhead_takes_medians_and_compares_batch_with_batch():
    def run(value, batches):
        return [{"test": "rate", "where": "node", "bytes": 8, "value": value, "batches": batches}]

    plain, loaded = [run(1.0, [1.0, 1.0]), run(8.0, [4.0, 8.0])], [run(0.5, [0.5, 0.5]), run(4.0, [4.0, 4.0])]
    (row,) = overhead.rows({"host": plain, "offpath": loaded})
    assert (row["plain_mpi"], row["preloaded"], row["ratio"]) == (2.5, 2.25, 0.5)
    assert row["ratio_quartiles"] == [0.5, 0.625] and row["runs"] == {
        "plain_mpi": [1.0, 8.0],
        "preloaded": [0.5, 4.0],
    }


@pytest.mark.parametrize("spec", [{"sizes": [12]}, {"sizes": [8], "runs": 0}, {"sizes": [2**21]}])
def test_overhead_refuses_what_it_cannot_measure(spec):
    with pytest.raises(OffpathError):
        overhead.OverheadSpec(**spec).check(LabSpec())
