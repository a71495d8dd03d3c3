"""Soaks: what is chosen, how ends are judged, and short ones with real faults."""

import json
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from offpath import plots
from offpath.errors import OffpathError
from offpath.soak import faults, outcome, plan, summary
from offpath.soak.growth import Life, Sample, growth, longest, per_hour
from offpath.soak.outcome import Ended, judge
from offpath.soak.programs import PROGRAMS as PROGRAMS_OF_SOAKS

PROGRAMS = ["one", "two", "three"]
LOST = "offpath: rank 1: MPI_Ialltoall on MPI_COMM_WORLD (4 ranks) failed: lost proxy 0 on node node1"


def choices(seed: int, faults=tuple(plan.FAULTS)) -> list[plan.Choice]:
    return [plan.choose(seed, run, PROGRAMS, list(faults), 3, 6) for run in range(200)]


def test_equal_seeds_choose_equal_runs():
    assert choices(5) == choices(5) != choices(6)


def test_without_faults_no_run_has_one():
    assert {choice.fault for choice in choices(1, ())} == {plan.NONE}


def test_choices_reach_everything():
    drawn = choices(1)
    assert {choice.program for choice in drawn} == set(PROGRAMS)
    assert {choice.fault for choice in drawn} == {*plan.FAULTS, plan.NONE}
    assert {choice.victim for choice in drawn if choice.fault == plan.RANK} == set(range(6))
    assert {choice.victim for choice in drawn if choice.fault == plan.LINK} == set(range(3))
    stops = [choice.lasts_s for choice in drawn if choice.fault == plan.STOP]
    assert None in stops and any(stops)
    # A link may be cut for less or for more than the silence after which a device counts as lost.
    cuts = [choice.lasts_s for choice in drawn if choice.fault == plan.LINK]
    assert any(cut < 4 for cut in cuts) and any(cut > 9 for cut in cuts)
    assert not any(4 <= cut <= 9 for cut in cuts)


def test_an_early_kill_strikes_while_the_job_starts():
    drawn = choices(1)
    early = [choice.moment_s(100.0) for choice in drawn if choice.fault == plan.EARLY]
    assert early and max(early) < 1
    assert all(choice.moment_s(100.0) >= 5 for choice in drawn if choice.fault == plan.KILL)


def test_the_seed_draws_where_devices_run():
    drawn = [plan.devices(3, stretch, ["local", "remote"]) for stretch in range(20)]
    assert set(drawn) == {"local", "remote"}
    assert drawn == [plan.devices(3, stretch, ["local", "remote"]) for stretch in range(20)]


def test_programs_of_both_libraries_are_drawn():
    assert {program.library for program in PROGRAMS_OF_SOAKS.values()} == {"openmpi", "mpich", "shmem"}
    messages = PROGRAMS_OF_SOAKS["messages-mpich"]
    assert messages.binary == "mpich_p2p_random_test" and not messages.has_host_run


@pytest.mark.parametrize(
    "ended, fault, expected",
    [
        (Ended(0, False, "", []), plan.KILL, outcome.RIGHT),
        (Ended(0, False, "", ["checksum is 2, not 1"]), plan.KILL, outcome.WRONG),
        (Ended(1, False, LOST, []), plan.KILL, outcome.EXPLAINED),
        (Ended(1, False, LOST, []), plan.NONE, outcome.WRONG),
        (Ended(1, False, LOST, []), plan.RESTART, outcome.WRONG),
        (Ended(1, False, "offpath: offloaded 3 of 3 collectives", []), plan.KILL, outcome.UNEXPLAINED),
        (Ended(139, False, "mpirun: a process crashed", []), plan.STOP, outcome.UNEXPLAINED),
        (Ended(1, False, "seed 7: ialltoall, MPI_Wait: wrong data", []), plan.KILL, outcome.WRONG),
        (Ended(124, True, LOST, []), plan.LINK, outcome.HUNG),
        (
            Ended(137, False, "mpirun noticed that process rank 1 exited on signal 9", []),
            plan.RANK,
            outcome.EXPLAINED,
        ),
        (
            Ended(9, False, "", [], "=   PID 215 RUNNING AT node1\n=   EXIT CODE: 9\n"),
            plan.RANK,
            outcome.EXPLAINED,
        ),
        (
            Ended(137, False, "mpirun noticed that process rank 1 exited on signal 9", []),
            plan.KILL,
            outcome.UNEXPLAINED,
        ),
    ],
)
def test_ends_are_judged(ended, fault, expected):
    assert judge(ended, fault)[0] == expected


def row(run: int, how: str, fault: str = plan.KILL, **more) -> dict:
    return {
        "run": run,
        "began_s": 10.0 * run,
        "program": "one",
        "mpi": "openmpi",
        "devices": "local",
        "fault": fault,
        "victim": "node1",
        "lasts_s": None,
        "at_s": None if fault == plan.NONE else 1.0,
        "outcome": how,
        "seconds": 3.0,
        "normal_s": 2.0,
        "recovery_s": 1.0 if how == outcome.RIGHT and fault != plan.NONE else None,
        "message": "",
        "left_behind": [],
        "daemons_lost": [],
    } | more


@pytest.mark.parametrize(
    "bad",
    [
        row(1, outcome.HUNG),
        row(1, outcome.WRONG),
        row(1, outcome.UNEXPLAINED),
        row(1, outcome.RIGHT, left_behind=["file x in /dev/shm"]),
        row(1, outcome.RIGHT, daemons_lost=["the device of node0 was killed by signal 11"]),
    ],
)
def test_one_bad_run_fails_the_soak(bad):
    good = [row(0, outcome.RIGHT), row(2, outcome.EXPLAINED), row(3, outcome.RIGHT, plan.NONE)]
    assert summary.report(1, good, [])["exit_code"] == 0
    assert summary.report(1, [*good, bad], [])["exit_code"] == 1


def test_report_counts_runs_and_faults():
    rows = [row(0, outcome.RIGHT), row(1, outcome.EXPLAINED), row(2, outcome.RIGHT, plan.NONE)]
    found = summary.report(1, rows, [])
    assert (found["runs"], found["faults"], found["finished_right"], found["ended_with_explanation"]) == (
        3,
        2,
        2,
        1,
    )
    assert found["worst_recovery_s"] == 1.0 and found["worst_end_s"] == 2.0


def test_report_counts_by_fault_library_and_devices():
    rows = [row(0, outcome.RIGHT), row(1, outcome.HUNG, mpi="mpich"), row(2, outcome.RIGHT, devices="remote")]
    found = summary.report(1, rows, [])
    assert found["by_mpi"]["openmpi"]["finished_right"] == 2 and found["by_mpi"]["mpich"]["hung"] == 1
    assert found["by_devices"]["remote"]["finished_right"] == 1 and found["by_devices"]["local"]["hung"] == 1


def test_growth_is_that_of_daemons_that_lived_long():
    long = Life("node0", 1, [Sample(run, 1000 + run, 10, 3, 3600.0 * run) for run in range(8)])
    short = Life("node1", 2, [Sample(0, 1, 1, 1), Sample(1, 2, 2, 2)])
    (found,) = growth([long, short], 5)
    assert found["node"] == "node0" and found["resident_bytes"] == [1000, 1007]
    assert found["bytes_per_hour"] == pytest.approx(1) and found["descriptors_per_hour"] == 0


def held(values: list[int]) -> list[Sample]:
    return [Sample(run, value, 10, 3, 36.0 * run) for run, value in enumerate(values)]


def test_the_slope_is_that_of_the_second_half():
    # 3 bytes in each 36 s, after a start that fills pools.
    slope, error = per_hour(
        held([1000 * run for run in range(50)] + [3 * run for run in range(50)]), resident
    )
    assert slope == pytest.approx(300) and error == pytest.approx(0, abs=1e-6)


def test_the_error_of_a_slope_tells_noise_from_growth():
    noise = [(run * 7919) % 101 for run in range(200)]
    slope, error = per_hour(held(noise), resident)
    assert abs(slope) < error
    slope, error = per_hour(held([value + 20 * run for run, value in enumerate(noise)]), resident)
    assert abs(slope - 2000) < error < 200


def test_a_step_has_a_wide_error():
    # A fit to the 100 single samples of the second half would claim 12 %.
    slope, error = per_hour(held([0] * 150 + [1000] * 50), resident)
    assert error > 0.2 * slope > 0


def test_a_short_life_has_no_slope():
    assert per_hour(held([1]), resident) == (None, None)
    assert per_hour(held([1, 2, 3]), resident)[1] is None


def resident(sample: Sample) -> int:
    return sample.resident_bytes


def test_the_report_shows_memory_and_descriptors_of_the_longest_life(capsys):
    lives = [Life("node0", 1, held([2**20] * 20)), Life("node0", 2, held([2**20 * run for run in range(60)]))]
    lives.append(Life("node1", 3, held([2**20] * 30)))
    found = summary.report(1, [row(0, outcome.RIGHT)], lives)
    assert [each["seconds"] for each in longest(found["growth"])] == [59 * 36, 29 * 36]
    summary.show(found)
    shown = capsys.readouterr().out
    assert "memory, MiB: 0.0 to 59.0; per hour +100.00, plus or minus 0.00" in shown
    assert "descriptors: 10 to 10; per hour +0.00, plus or minus 0.00" in shown
    assert "node1 served runs 0 to 29, for 17.4 minutes" in shown


def test_the_picture_is_over_time(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(plots.plt, "close", lambda figure: drawn.append(figure))
    found = summary.report(1, [row(0, outcome.RIGHT, began_s=120.0)], [Life("node0", 1, held([1, 2, 3]))])
    plots.soak(found, tmp_path / "soak.png")
    (figure,) = drawn
    runs, memory, descriptors = figure.axes
    assert list(runs.lines[0].get_xdata()) == [2.0]
    assert list(memory.lines[0].get_xdata()) == pytest.approx([0, 0.6, 1.2])
    assert "minutes" in descriptors.get_xlabel()


@pytest.mark.parametrize(
    "arguments, says",
    [
        (("--faults", "kill,flood"), "'flood'"),
        (("--faults", "none,kill"), "none alone"),
        (("--programs", "chess"), "'chess'"),
        (("--devices", "local,far"), "'far'"),
        (("--minutes", "0"), "--minutes"),
        (("--nodes", "1"), "emulated network"),
    ],
)
def test_bad_arguments_are_named(offpath, arguments, says):
    done = offpath("soak", *arguments)
    assert done.returncode != 0 and says in done.stderr


@pytest.fixture
def with_short_halo(build, tmp_path):
    """The build under test, with a `halo` whose runs take a second."""
    try:
        program = build.program("halo")
    except OffpathError as error:
        pytest.skip(str(error))
    root = tmp_path / "build"
    (root / "bin").mkdir(parents=True)
    for entry in [*build.root.iterdir(), *(build.root / "bin").iterdir()]:
        if entry.name not in ("bin", "halo"):
            (root / entry.relative_to(build.root)).symlink_to(entry)
    short = root / "bin/halo"
    short.write_text(
        f"#!/bin/sh\nexec {shlex.quote(str(program))} --variant nonblocking --size 64 --steps 1000 --json -\n"
    )
    short.chmod(0o755)
    return str(root)


def test_faults_cost_no_results(offpath, namespaces, with_short_halo, tmp_path):
    """Every kind of fault once, about the middle of a run, and then a run without one. The seed makes it
    so."""
    report, picture = tmp_path / "soak.json", tmp_path / "soak.png"
    kinds = ["kill", "early", "stop", "link", "rank"]
    done = offpath(
        *("soak", "--minutes", "5", "--seed", "2459969", "--runs", "6", "--faults", ",".join(kinds)),
        *("--programs", "halo", "--ranks-per-node", "1", "--devices", "local"),
        *("--json", str(report), "--plot", str(picture)),
        TMPDIR=str(tmp_path),
        OFFPATH_BUILD=with_short_halo,
    )
    found = json.loads(report.read_text())
    assert done.returncode == 0, done.stderr + "".join(kept_output(tmp_path))
    assert [row["fault"] for row in found["rows"]] == ["link", "stop", "kill", "early", "rank", "none"]
    assert found["runs"] == 6 == found["finished_right"] + found["ended_with_explanation"]
    assert found["hung"] == found["wrong"] == found["left_behind"] == found["daemons_lost"] == 0
    assert found["rows"][5]["outcome"] == "finished_right"
    assert picture.stat().st_size > 0


def test_daemons_serve_all_runs_without_faults(offpath, namespaces, with_short_halo, tmp_path):
    report = tmp_path / "soak.json"
    done = offpath(
        *("soak", "--minutes", "5", "--runs", "2", "--faults", "none", "--programs", "halo"),
        *("--ranks-per-node", "1", "--json", str(report)),
        TMPDIR=str(tmp_path),
        OFFPATH_BUILD=with_short_halo,
    )
    found = json.loads(report.read_text())
    assert done.returncode == 0, done.stderr + "".join(kept_output(tmp_path))
    assert found["finished_right"] == 2 and found["faults"] == 0
    assert [len(life["samples"]) for life in found["lives"]] == [2, 2]
    assert found["growth"] == []  # two runs are not a long life


def kept_output(folder: Path) -> list[str]:
    return [path.read_text(errors="replace") for path in folder.glob("offpath-logs-*/run*/std*")]


def test_a_killed_daemon_has_ended_when_the_fault_is_over():
    # Otherwise it may get no successor, and the next run counts it as lost.
    class Devices:
        process = subprocess.Popen(["sleep", "60"])

        revived = 0

        def victim(self, node):
            return self

        def revive(self):
            self.revived += 1

    devices = Devices()
    fault = faults.Fault(plan.Choice("fft3d", plan.KILL, 1, 0.0, None, 1), 0.0, None, devices)
    fault.start()
    while fault.struck_s is None and fault.error is None:
        time.sleep(0.001)
    fault.end()
    assert Devices.process.returncode == -signal.SIGKILL
    assert devices.revived == 1
