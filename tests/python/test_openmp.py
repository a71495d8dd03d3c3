"""Programs with OpenMP target regions, started as a user starts them."""

import json
import shutil
from pathlib import Path

import pytest

from offpath import openmp
from offpath.artifacts import Artifacts, find_artifacts

HELLO = Path("build/bin/openmp-hello")
pytestmark = pytest.mark.skipif(not HELLO.exists(), reason="clang 16 is not there, so no program has regions")


def test_programs_with_regions_are_recognised():
    assert openmp.has_regions(["mpirun", "-n", "2", str(HELLO)])
    assert not openmp.has_regions(["mpirun", "-n", "2", shutil.which("ls") or "ls"])
    assert not openmp.has_regions(["./there-is-no-such-program", f"--with={HELLO}"])


def test_the_plugins_come_first_in_the_path():
    plugins = str(find_artifacts().openmp_plugins)
    assert openmp.variables(find_artifacts(), {}, {}) == {"LD_LIBRARY_PATH": plugins}
    path = openmp.variables(find_artifacts(), {}, {"LD_LIBRARY_PATH": "/usr/x"})["LD_LIBRARY_PATH"]
    assert path == f"{plugins}:/usr/x"


def test_any_program_finds_the_plugins_that_are_built(offpath, tmp_path):
    """Any program may load a library with regions while it runs."""
    assert openmp.variables(Artifacts(tmp_path), {}, {}, needed=False) == {}
    done = offpath("run", "--mpi", "none", "--", "printenv", "LD_LIBRARY_PATH")
    assert done.stdout.startswith(str(find_artifacts().openmp_plugins)), done.stderr


def test_run_gives_a_program_without_mpi_a_device(offpath):
    done = offpath("run", "--", str(HELLO))
    assert done.returncode == 0, done.stderr
    assert "x is 42, computed on the device" in done.stdout
    assert "nothing to do" not in done.stderr


@pytest.mark.parametrize("dpu", ["local", "remote"])
def test_the_lab_runs_regions_on_its_devices(offpath, namespaces, dpu):
    done = offpath("lab", "run", "--nodes", "2", "--dpu", dpu, "--", str(HELLO))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("x is 42, computed on the device") == 2
    assert done.stdout.count("hello from a target region") == 2


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
@pytest.mark.parametrize("dpu", ["local", "remote"])
def test_regions_call_mpi_on_the_devices_of_the_lab(offpath, namespaces, dpu, mpi):
    program = Path(f"build/bin/openmp-mpi-messages-{mpi}")
    if not program.exists():
        pytest.skip(f"regions cannot call {mpi}: it was not there when offpath was built")
    done = offpath("lab", "run", "--nodes", "2", "--dpu", dpu, "--", str(program))
    assert done.returncode == 0, done.stderr
    assert "a token went around all devices: right" in done.stdout


@pytest.mark.parametrize(
    ("example", "summary"),
    [("mpi_four_ways", "hosts sent "), ("mpi_windows_across", "of 1 windows altogether there")],
)
@pytest.mark.parametrize("dpu", ["local", "remote"])
def test_hosts_and_devices_of_the_lab_communicate(offpath, namespaces, dpu, example, summary):
    program = Path(f"build/bin/openmp-{example.replace('_', '-')}-openmpi")
    done = offpath("lab", "run", "--nodes", "2", "--dpu", dpu, "--", str(program))
    assert done.returncode == 0, done.stderr
    assert Path(f"examples/openmp/{example}.txt").read_text() in done.stdout
    assert summary in done.stderr


_TIMED = {"empty_region", "region_with_int", "map_to", "map_from", "memcpy", "nowait_1ms", "chain"}
_MPI = {
    f"mpi_{what}_{ends}"
    for what in ("latency", "bandwidth")
    for ends in ("host_host", "device_device", "host_device")
}


@pytest.mark.parametrize(("dpu", "nodes"), [("local", 1), ("remote", 2)])
def test_bench_target_measures_regions_and_mpi(offpath, namespaces, tmp_path, dpu, nodes):
    report, picture = tmp_path / "target.json", tmp_path / "target.png"
    command = ["--dpu", dpu, "--nodes", str(nodes), "--runs", "1", "--repeats", "10"]
    done = offpath("bench", "target", *command, "--json", str(report), "--plot", str(picture))
    assert done.returncode == 0, done.stderr
    found = json.loads(report.read_text())
    rows = {"offpath": [], "llvm-host": []}
    for row in found["rows"]:
        rows[row["engine"]].append(row)
    link = {"raw_to", "raw_from"} if dpu == "remote" else set()
    assert {row["test"] for row in rows["llvm-host"]} == _TIMED
    assert {row["test"] for row in rows["offpath"]} == _TIMED | link | _MPI
    assert all(row["seconds"] > 0 and ("bytes" in row) != ("regions" in row) for row in found["rows"])
    for row in found["rows"]:
        moves = row["test"].startswith(("map", "raw", "memcpy", "mpi_bandwidth"))
        assert ("bandwidth_Bps" in row) == moves
    for row in rows["offpath"]:
        if row["test"].startswith("map"):
            assert row["of_memcpy"] > 0 and ("of_raw_link" in row) == (dpu == "remote")
    assert picture.stat().st_size > 0

    # Regions that share a core cannot overlap: together they take the sum of their times.
    cpus = len(found["lab"]["placement"][0]["device"])
    for row in rows["offpath"]:
        if row["test"] == "nowait_1ms":
            assert row["ideal_seconds"] == pytest.approx(1e-3 * max(1, row["regions"] / cpus))
            assert row["best_seconds"] > 0.99 * row["ideal_seconds"]


def test_bench_target_is_of_one_or_two_nodes(offpath):
    done = offpath("bench", "target", "--nodes", "3")
    assert done.returncode != 0
    assert "use --nodes 1 or 2" in done.stderr
