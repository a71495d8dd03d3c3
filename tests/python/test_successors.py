"""Planned restarts of daemons: jobs that run are not disturbed, and jobs that start find a daemon."""

import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from conftest import command, environment, eventually
from offpath import successors
from offpath.errors import OffpathError

JOBS = """
while [ ! -e {stop} ]; do
    mpirun -n 2 {bench} latency --op ialltoall --bytes 64K --iterations 300 --json - || exit 1
    echo x >>{runs}
done
"""


def test_successor_gets_the_options_that_last():
    words = ["/a/offpathd", "--dir", "d", "--ready-fd", "5", "--cpus", "3", "--replace"]
    assert successors.successor_command(words, None) == [
        *("/a/offpathd", "--dir", "d", "--cpus", "3", "--replace")
    ]
    assert successors.successor_command(words, "/new/offpathd")[0] == "/new/offpathd"
    with pytest.raises(OffpathError, match="--listen"):
        successors.successor_command([*words, "--listen=10.0.0.1"], None)


@pytest.mark.parametrize(
    "arguments, says",
    [
        (("restart", "--node", "elsewhere"), "elsewhere"),
        (("off", "--node", "here"), "restart and drain"),
        (("drain", "--daemon", "offpathd"), "restart"),
    ],
)
def test_bad_arguments_are_named(offpath, arguments, says):
    done = offpath("control", *arguments)
    assert done.returncode != 0 and says in done.stderr


def test_no_daemon_is_an_error(offpath, tmp_path):
    done = offpath("control", "restart", "--dir", str(tmp_path))
    assert done.returncode != 0 and "no daemon serves" in done.stderr


def test_restarts(offpath, build, tmp_path):
    """Jobs run one after the other while the daemon is restarted. Each is offloaded, with right data."""
    stop, runs = tmp_path / "stop", tmp_path / "runs"
    script = JOBS.format(stop=stop, runs=runs, bench=build.program("offpath-bench-mpi"))
    settings = environment(
        TMPDIR=str(tmp_path),
        OFFPATH_IDLE_EXIT="60",
        OFFPATH_MIN_BYTES="0",
        OMPI_ALLOW_RUN_AS_ROOT="1",
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
        OMPI_MCA_rmaps_base_oversubscribe="1",
        OMPI_MCA_mpi_yield_when_idle="1",
    )
    job = subprocess.Popen(
        command("run", "--mpi", "openmpi", "--", "sh", "-c", script),
        env=settings,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    served: list[int] = []
    try:
        assert eventually(lambda: list(tmp_path.glob(f"offpath-run-*/{socket.gethostname()}.pid")), 60)
        for _ in range(3):
            before = done_runs(runs)
            done = offpath("control", "restart", TMPDIR=str(tmp_path), OFFPATH_DIR=str(tmp_path / "none"))
            assert done.returncode == 0, done.stderr
            served += map(int, re.findall(r"pid (\d+)", done.stderr))
            assert eventually(lambda: done_runs(runs) > before or job.poll() is not None, 60)  # noqa: B023
        stop.touch()
        _, said = job.communicate(timeout=60)
    finally:
        if job.poll() is None:
            job.send_signal(signal.SIGTERM)
            job.communicate(timeout=60)
    assert job.returncode == 0, said
    assert len(re.findall(r"^offpath: offloaded [1-9]", said, re.MULTILINE)) == done_runs(runs) >= 3, said
    assert len(set(served)) == 4  # the first one and three successors, each replaced by the next
    assert eventually(lambda: not any(is_daemon(pid) for pid in served))


def test_drained_daemon_ends(offpath, build, tmp_path):
    ready, write = os.pipe()
    daemon = subprocess.Popen(
        [str(build.daemon), "--dir", str(tmp_path / "d"), "--ready-fd", str(write), "--log-level", "error"],
        pass_fds=[write],
    )
    os.close(write)
    try:
        assert os.read(ready, 1) == b"1"
        done = offpath("control", "drain", "--dir", str(tmp_path / "d"))
        assert done.returncode == 0, done.stderr
        assert daemon.wait(20) == 0
        assert list((tmp_path / "d").iterdir()) == []
    finally:
        os.close(ready)
        if daemon.poll() is None:
            daemon.kill()
            daemon.wait()


def done_runs(runs: Path) -> int:
    return len(runs.read_text().split()) if runs.exists() else 0


def is_daemon(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == "offpathd"
    except OSError:
        return False
