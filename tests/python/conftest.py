import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from offpath.artifacts import find_artifacts
from offpath.errors import NamespacesUnavailable, OffpathError
from offpath.lab import sandbox
from slurm_user import running

SOURCE_ROOT = Path(__file__).resolve().parents[2]

NOBODY = 65534


def command(*arguments: str, user: int | None = None) -> list[str]:
    """The offpath command line, for another user if `user` is given."""
    prefix = ["setpriv", f"--reuid={user}", "--clear-groups"] if user is not None else []
    return [*prefix, sys.executable, "-m", "offpath", *arguments]


def environment(**extra: str) -> dict[str, str]:
    ours = {"PYTHONPATH": str(SOURCE_ROOT / "python"), "COLUMNS": "200", "OFFPATH_SIGNATURES": "off"}
    return dict(os.environ) | ours | extra


@pytest.fixture
def offpath():
    """Runs `offpath ARGUMENTS` to its end."""

    def run(
        *arguments: str, user: int | None = None, timeout: float = 180, **extra: str
    ) -> subprocess.CompletedProcess:
        return subprocess.run(
            command(*arguments, user=user),
            env=environment(**extra),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    return run


@pytest.fixture(scope="session")
def namespaces() -> None:
    try:
        sandbox.probe()
    except NamespacesUnavailable as error:
        pytest.skip(f"no emulated clusters here: {error}")


@pytest.fixture(scope="session")
def build():
    """The build under test, if it holds what offload needs."""
    artifacts = find_artifacts()
    try:
        artifacts.daemon, artifacts.mpi_preload, artifacts.program("offpath-bench-mpi")
    except OffpathError as error:
        pytest.skip(f"offload is not tested: {error}")
    return artifacts


def traces(marker: str) -> list[str]:
    """What remains of a lab whose processes have `marker` in their command lines or environment, and the
    files of any lab."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            content = command + (entry / "environ").read_bytes()
            alive = (entry / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        except OSError:
            continue
        if alive and marker.encode() in content:
            found.append(f"process {entry.name}: {command!r}")
    return found


def eventually(condition, seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture(scope="module")
def slurm_cluster(build, namespaces):
    with running(build, environment()) as cluster:
        yield cluster


@pytest.fixture
def slurm(slurm_cluster):
    """A cluster of two nodes that runs Slurm. A test fails if it leaves something there."""
    yield slurm_cluster
    slurm_cluster.run("scancel", "--user=root")
    assert eventually(slurm_cluster.clean, 30), slurm_cluster.shell(
        f"squeue; ps -ef; ls {slurm_cluster.room}/steps; tail -n 20 {slurm_cluster.room}/*.log"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Tells tests/suite of each case: its outcome, its time, and the CPU time of what it waited for."""
    report = yield
    path = os.environ.get("OFFPATH_TEST_CASES")
    if path is None:
        return report
    used = sum(os.times()[:4])
    before = item.stash.get(_USED, used)
    item.stash[_USED] = used
    if report.when == "call" or not report.passed:
        said = (
            report.longrepr[2].removeprefix("Skipped: ")
            if report.skipped and isinstance(report.longrepr, tuple)
            else ""
        )
        entry = {
            "name": item.nodeid,
            "outcome": report.outcome,
            "seconds": report.duration,
            "cpu_s": used - before,
            "said": said,
        }
        with open(path, "a") as file:
            print(json.dumps(entry), file=file)
    return report


_USED = pytest.StashKey[float]()
