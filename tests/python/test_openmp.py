"""Programs with OpenMP target regions, started as a user starts them."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import free_port
from offpath import openmp
from offpath.artifacts import Artifacts, find_artifacts
from offpath.errors import OffpathError

HELLO = Path("build/bin/openmp-hello")
pytestmark = pytest.mark.skipif(not HELLO.exists(), reason="clang 16 is not there, so no program has regions")


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Ranks that rest would only let devices of regions wait longer. Beside other tests, a device may get no
    core for seconds. It is not lost then."""
    monkeypatch.delenv("RESTING_YIELD", raising=False)
    monkeypatch.setenv("OFFPATH_LOST_AFTER_S", "30")


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


# The compiled tests openmp.mpi_messages, .mpi_four_ways and .mpi_windows_across attach both kinds of devices.
@pytest.mark.parametrize(
    ("dpu", "mpi"), [pytest.param("local", "mpich", marks=pytest.mark.other_mpi), ("remote", "openmpi")]
)
def test_regions_call_mpi_on_the_devices_of_the_lab(offpath, namespaces, dpu, mpi):
    program = Path(f"build/bin/openmp-mpi-messages-{mpi}")
    if not program.exists():
        pytest.skip(f"regions cannot call {mpi}: it was not there when offpath was built")
    done = offpath("lab", "run", "--nodes", "2", "--dpu", dpu, "--", str(program))
    assert done.returncode == 0, done.stderr
    assert "a token went around all devices: right" in done.stdout


@pytest.mark.parametrize(
    ("dpu", "example", "summary"),
    [
        ("remote", "mpi_four_ways", "hosts sent "),
        ("local", "mpi_windows_across", "of 1 windows altogether there"),
    ],
)
def test_hosts_and_devices_of_the_lab_communicate(offpath, namespaces, dpu, example, summary):
    program = Path(f"build/bin/openmp-{example.replace('_', '-')}-openmpi")
    done = offpath("lab", "run", "--nodes", "2", "--dpu", dpu, "--", str(program))
    assert done.returncode == 0, done.stderr
    assert Path(f"examples/openmp/{example}.txt").read_text() in done.stdout
    assert summary in done.stderr


def test_run_gives_the_ranks_of_a_job_a_device(offpath):
    program = "build/bin/openmp-mpi-messages-openmpi"
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    job = ["mpirun", "--oversubscribe", "-n", "2", program]
    done = offpath("run", "--", *job, **root, OMP_TARGET_OFFLOAD="MANDATORY")
    assert done.returncode == 0, done.stderr
    assert "a token went around all devices: right" in done.stdout


def test_run_starts_remote_devices_for_regions(offpath, tmp_path):
    agent = tmp_path / "agent"
    agent.write_text('#!/bin/sh\nshift\nexec sh -c "$*"\n')
    agent.chmod(0o755)
    started = ["--agent", str(agent), "--device-daemon", str(find_artifacts().daemon)]
    device = f"127.0.0.1:{free_port()}"
    done = offpath("run", "--devices", device, *started, "--", str(HELLO), OMP_TARGET_OFFLOAD="MANDATORY")
    assert done.returncode == 0, done.stderr
    assert "x is 42, computed on the device" in done.stdout


def test_the_lab_runs_regions_on_emulated_aarch64_devices(offpath, namespaces, tmp_path):
    try:
        find_artifacts().device("aarch64")
    except OffpathError as error:
        pytest.skip(str(error))
    program = tmp_path / "hello"
    build = [str(find_artifacts().root / "bin/offpath-clang"), "-fopenmp", "-O1", "-o", str(program)]
    architectures = {"OFFPATH_DEVICE_ARCHITECTURES": "aarch64"}
    subprocess.run([*build, "examples/openmp/hello.c"], check=True, env=os.environ | architectures)
    done = offpath(
        "lab", "run", "--nodes", "1", "--dpu", "aarch64", "--", str(program), OMP_TARGET_OFFLOAD="MANDATORY"
    )
    assert done.returncode == 0, done.stderr
    assert "x is 42, computed on the device" in done.stdout


@pytest.mark.parametrize(("dpu", "attached"), [("local", "local"), ("remote", "remote")])
def test_info_of_a_lab_lists_target_devices(offpath, namespaces, dpu, attached):
    done = offpath("info", "--nodes", "2", "--dpu", dpu, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["target_devices"]
    assert [(row["node"], row["number"], row["architecture"]) for row in found] == [
        ("node0", 0, "x86_64"),
        ("node1", 0, "x86_64"),
    ]
    assert all(attached in row["attached"] and row["cpus"] >= 1 for row in found)
    assert all((row["images_kept"], row["image_cache_bytes"]) == (0, 256 << 20) for row in found)


def test_devices_of_nodes_are_numbered_by_node():
    said = (
        "offpath device d0\n  Architecture: x86_64\n  CPUs: 2\n  Attached: local\n  Images kept: 3\n"
        "  Image bytes: 4096 of 8192\n  Images found: 7\n  Images dropped: 1\n"
    )
    answers = [
        {"node": "node1", "said": [["", "offpath: device a: refused; it is left out\n"], [said, ""]]},
        {"node": "node0", "said": [[said, ""], [said, ""]]},
    ]
    lines = "\n".join(["noise", *map(json.dumps, answers)])
    rows = openmp.devices_of_nodes(lines)
    assert rows == openmp.devices_of_nodes(
        "".join(map(json.dumps, answers)) + "\n\n"
    )  # a launcher joins lines
    assert [(row["node"], row["number"], row["device"]) for row in rows] == [
        ("node0", 0, "d0"),
        ("node0", 1, "d0"),
        ("node1", 0, "d0"),
        ("node1", None, "device a: refused; it is left out"),
    ]
    images = {key: value for key, value in rows[0].items() if "image" in key}
    assert images == {
        "images_kept": 3,
        "image_bytes": 4096,
        "image_cache_bytes": 8192,
        "images_found": 7,
        "images_dropped": 1,
    }


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
    if dpu == "remote":
        command += ["--plot", str(picture)]
    done = offpath("bench", "target", *command, "--json", str(report))
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
    assert dpu == "local" or picture.stat().st_size > 0

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
