"""Offload in a lab and on this machine, with the build under test."""

import json
import os
import re
from pathlib import Path

import pytest

from conftest import eventually, traces

MEGA = 2**20


@pytest.fixture
def bench(build):
    return str(build.program("offpath-bench-mpi"))


def test_offloaded_data_is_right_and_crosses_the_links(offpath, namespaces, bench, tmp_path):
    report = tmp_path / "c.json"
    arguments = [bench, "latency", "--op", "ialltoall", "--bytes", "1M", "--iterations", "4", "--warmup", "1", "--json", "-"]
    done = offpath("lab", "compare", "--nodes", "2", "--link", "unlimited", "--runs", "1", "--json", str(report), "--", *arguments)
    assert done.returncode == 0, done.stderr
    host, offloaded = json.loads(report.read_text())["runs"]
    assert host["results"]["verified"] and offloaded["results"]["verified"]
    assert re.match(r"offpath: offloaded [1-9]", offloaded["summary_line"])
    assert offloaded["device_cpu_s"] is not None
    for run in (host, offloaded):
        for node in run["wire"]:
            # Five exchanges of 1 MiB, and little else: no other way leads from node to node.
            assert 5 * MEGA < node["sent"] < 6 * MEGA


def test_overlap_benchmark_writes_the_rows_that_scripts_read(offpath, namespaces, bench, tmp_path):
    report, picture = tmp_path / "o.json", tmp_path / "o.png"
    done = offpath(
        "bench", "overlap", "--nodes", "2", "--link", "2gbit", "--ops", "ibcast", "--sizes", "4M", "--runs", "1", "--iterations", "3",
        "--json", str(report), "--plot", str(picture),
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(report.read_text())["rows"]
    assert [row["engine"] for row in rows] == ["host", "offpath"]
    for row in rows:
        assert (row["op"], row["bytes"]) == ("ibcast", 4 * MEGA)
        assert row["wire_s"] == pytest.approx(4 * MEGA * 8 / 2e9)
        assert min(row["pure_s"], row["compute_s"], row["total_s"]) > 0
        assert row["overlap_percent"] == pytest.approx(max(0, 100 * (1 - (row["total_s"] - row["compute_s"]) / row["pure_s"])))
    assert rows[0]["work_units"] == rows[1]["work_units"]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_run_offloads_an_ordinary_job_and_cleans_up(offpath, bench):
    launcher = ["mpirun", "--oversubscribe", "-n", "2"]
    arguments = ["latency", "--op", "ialltoall", "--bytes", "1M", "--iterations", "3", "--json", "-"]
    marker = f"run-{os.getpid()}"
    done = offpath("run", "--", *launcher, bench, *arguments, MARKER=marker, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verified"]
    assert re.search(r"^offpath: offloaded [1-9]", done.stderr, re.MULTILINE)
    assert eventually(lambda: not traces(marker)), traces(marker)
    assert not list(Path("/tmp").glob("offpath-run-*/owner"))


def test_run_passes_the_exit_code_on_and_preloads_ranks_only(offpath, build):
    done = offpath("run", "--", "mpirun", "--oversubscribe", "-n", "1", "sh", "-c", "echo $LD_PRELOAD; exit 5",
                   OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    assert done.returncode == 5 and done.stdout.strip() == str(build.mpi_preload)


def test_info_names_back_ends_and_transports(offpath, build):
    found = json.loads(offpath("info", "--json").stdout)
    assert found
    shown = offpath("info")
    assert shown.returncode == 0
    for name in ("map", "cma", "staged", "tcp"):
        assert name in shown.stdout


def test_info_refuses_a_daemon_that_talks_nonsense(offpath, tmp_path):
    (tmp_path / "bin").mkdir()
    daemon = tmp_path / "bin/offpathd"
    daemon.write_text("#!/bin/sh\necho nonsense\n")
    daemon.chmod(0o755)
    done = offpath("info", OFFPATH_BUILD=str(tmp_path))
    assert done.returncode == 2 and "nonsense" in done.stderr
