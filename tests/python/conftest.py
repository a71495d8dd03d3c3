import contextlib
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from functools import cache
from pathlib import Path
from typing import NoReturn

import pytest

from offpath import __main__ as start
from offpath import console
from offpath.artifacts import find_artifacts
from offpath.errors import NamespacesUnavailable, OffpathError
from offpath.lab import sandbox
from offpath.preload import joined
from slurm_user import running

SOURCE_ROOT = Path(__file__).resolve().parents[2]

NOBODY = 65534


def _as(user: int | None) -> list[str]:
    return ["setpriv", f"--reuid={user}", "--clear-groups"] if user is not None else []


def command(*arguments: str, user: int | None = None) -> list[str]:
    """The offpath command line, for another user if `user` is given."""
    return [*_as(user), sys.executable, "-m", "offpath", *arguments]


def environment(**extra: str) -> dict[str, str]:
    ours = {"PYTHONPATH": str(SOURCE_ROOT / "python"), "COLUMNS": "200", "OFFPATH_SIGNATURES": "off"}
    return dict(os.environ) | ours | extra


@pytest.fixture
def offpath():
    """Runs `offpath ARGUMENTS` to its end, in a process of its own.

    The process is a fork of this one if it may be: the interpreter's start and the modules of the command
    take 0.3 s of CPU, more than most of these commands themselves."""

    def run(
        *arguments: str, user: int | None = None, timeout: float = 180, **extra: str
    ) -> subprocess.CompletedProcess:
        # Ranks of its jobs rest while they wait, as in other tests.
        preloaded = joined(" ", os.environ.get("LD_PRELOAD"), os.environ.get("RESTING_YIELD"))
        resting = {"LD_PRELOAD": preloaded} if preloaded else {}
        line, its_environment = command(*arguments, user=user), environment(**resting | extra)
        # Another user, settings of the interpreter or the loader, and threads of a test need a fresh start.
        fresh = user is not None or threading.active_count() > 1
        fresh = fresh or any(name.startswith(("PYTHON", "LD_")) for name in extra)
        return subprocess.run(
            line,
            env=its_environment,
            preexec_fn=None if fresh else lambda: _run_forked(list(arguments), its_environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    return run


def _run_forked(arguments: list[str], its_environment: dict[str, str]) -> NoReturn:
    """Runs the command in this fork of the tests' process, whose standard streams are the command's, as if an
    interpreter had started it."""
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # ours, and the one that `subprocess` watches until an exec
    gc.enable()
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    os.environ.clear()
    os.environ.update(its_environment)
    sys.argv = ["offpath", *arguments]
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, 1 if number == 2 else -1) for number, mode in ((0, "r"), (1, "w"), (2, "w"))
    )
    for made in ("out", "err"):
        vars(console).pop(made, None)
    tempfile.tempdir = None  # TMPDIR may be another one
    code: object = 1
    try:
        code = start.main()
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(code if isinstance(code, int) else 1 if code else 0)


@pytest.fixture(scope="session")
def namespaces() -> None:
    try:
        sandbox.probe()
    except NamespacesUnavailable as error:
        pytest.skip(f"no emulated clusters here: {error}")


@cache
def _no_namespaces_of(user: int) -> str:
    done = subprocess.run(
        [*_as(user), "unshare", "--user", "--map-root-user", "true"], capture_output=True, text=True
    )
    return done.stderr.strip() if done.returncode != 0 else ""


@pytest.fixture
def ordinary_user() -> int:
    """A user without rights who reaches this tree. For root only."""
    if os.geteuid() != 0:
        pytest.skip("not root, so no other user can try")
    tree = Path(__file__).parents[2]
    if subprocess.run([*_as(NOBODY), "test", "-x", str(tree)], check=False).returncode != 0:
        pytest.skip(f"other users cannot reach {tree}")
    return NOBODY


@pytest.fixture(
    params=[pytest.param(None, id="self"), pytest.param(NOBODY, id="unprivileged")]
    if os.geteuid() == 0
    else [pytest.param(None, id="self")]
)
def user(request) -> int | None:
    """Who runs a lab: this user and, for root, also a user without rights."""
    if request.param is None:
        return None
    request.getfixturevalue("ordinary_user")
    if why := _no_namespaces_of(request.param):
        pytest.skip(f"no emulated clusters for an ordinary user: {why}")
    return request.param


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


def eventually(condition, seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def free_port() -> int:
    """A free port of 127.0.0.1 that the system gives to nobody who asks for any port."""
    first_given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    count = max(first_given - 1024, 1024)
    for attempt in range(count):
        port = 1024 + (7 * os.getpid() + attempt) % count
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise RuntimeError("no port is free")


@pytest.fixture
def short_folder():
    """A directory whose path leaves room for the sockets of a session below it."""
    with tempfile.TemporaryDirectory(prefix="offpath-", dir="/tmp") as folder:
        yield Path(folder)


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
