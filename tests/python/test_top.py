"""`offpath top` shows what real daemons do, and asks them for nothing."""

import json
import os
import subprocess
import time

import pytest
from prometheus_client import parser

from conftest import eventually
from offpath import status_page

ROOT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}


@pytest.fixture
def daemon(build, tmp_path):
    """A daemon of two proxies, and its session directory."""
    read, write = os.pipe()
    arguments = ["--dir", str(tmp_path), "--name", "watched", "--proxies", "2", "--ready-fd", str(write)]
    process = subprocess.Popen([str(build.daemon), *arguments], pass_fds=(write,), stderr=subprocess.DEVNULL)
    os.close(write)
    assert os.read(read, 1) == b"1"
    os.close(read)
    yield process
    process.terminate()
    assert process.wait(20) == 0


def _of(daemon, found: dict) -> list[dict]:
    return [entry for entry in found["daemons"] if entry["process"] == daemon.pid]


def test_a_job_is_seen_at_work(offpath, build, daemon, tmp_path):
    def idle():
        said = offpath("top", "--once", "--json", "--interval", "0.2")
        assert said.returncode == 0, said.stderr
        (entry,) = _of(daemon, json.loads(said.stdout))
        assert entry["node"] == "watched" and entry["ranks"] == [] and len(entry["proxies"]) == 2
        assert all(row["sessions"] == 0 for row in entry["proxies"])
        return all(row["cpu_percent"] < 20 for row in entry["proxies"])

    assert eventually(idle, 60)
    program = [build.program("offpath-bench-mpi"), "overlap", "--op", "ialltoall", "--bytes", "1M"]
    job = subprocess.Popen(
        ["mpirun", "-n", "2", *map(str, program), "--iterations", "3000"],
        env=os.environ | ROOT | {"OFFPATH_DIR": str(tmp_path), "LD_PRELOAD": str(build.mpi_preload)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        deadline = time.monotonic() + 60
        while True:
            (entry,) = _of(daemon, json.loads(offpath("top", "--once", "--json", "-i", "0.2").stdout))
            moved = sum(row["copied_Bps"] + row["sent_Bps"] for row in entry["proxies"])
            working = [rank for rank in entry["ranks"] if rank["operations"] > 0]
            if len(working) == len(entry["ranks"]) == 2 and moved > 0:
                break
            assert job.poll() is None, job.stderr.read().decode()
            assert time.monotonic() < deadline, entry
    finally:
        job.terminate()
        job.communicate(timeout=60)
    assert sorted(rank["name"].split(" of ")[0] for rank in entry["ranks"]) == ["rank 0", "rank 1"]
    assert sum(row["schedules_run"] for row in entry["proxies"]) > 0


def test_the_table_is_for_people(offpath, daemon):
    done = offpath("top", "--once", "-i", "0.1")
    assert done.returncode == 0, done.stderr
    assert "watched" in done.stdout and "received/s" in done.stdout
    wrong = offpath("top", "--once", "-i", "0")
    assert wrong.returncode == 2 and "--interval 0 is out of range" in wrong.stderr


def test_prometheus_reads_the_counters(offpath, daemon):
    done = offpath("top", "--prometheus")
    assert done.returncode == 0, done.stderr
    families = {family.name: family for family in parser.text_string_to_metric_families(done.stdout)}
    ours = [
        sample
        for sample in families["offpath_proxy_bytes_sent"].samples
        if sample.labels["process"] == str(daemon.pid)
    ]
    assert [(sample.labels["node"], sample.labels["proxy"]) for sample in ours] == [
        ("watched", "0"),
        ("watched", "1"),
    ]
    assert families["offpath_proxy_sessions"].type == "gauge"
    assert families["offpath_proxy_cpu_seconds"].type == "counter"
    assert offpath("top", "--prometheus", "--json").returncode == 2


def test_a_killed_daemon_leaves_nothing_and_is_no_longer_shown(offpath, build, tmp_path):
    read, write = os.pipe()
    arguments = ["--dir", str(tmp_path), "--ready-fd", str(write)]
    process = subprocess.Popen([str(build.daemon), *arguments], pass_fds=(write,), stderr=subprocess.DEVNULL)
    os.close(write)
    assert os.read(read, 1) == b"1"
    os.close(read)
    (page,) = [page for page in status_page.find() if page.process == process.pid]
    process.kill()
    process.wait()
    assert page.read().node and not status_page.alive(page)
    assert not _of(process, json.loads(offpath("top", "--once", "--json", "-i", "0.1").stdout))
