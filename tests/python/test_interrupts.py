"""Ctrl-C while the command starts ends it at once and without a traceback."""

import os
import signal
import subprocess
import sys
import time

import pytest

from conftest import command, environment, eventually
from offpath import status_page
from offpath.lab.clean import daemons_of

QUIET_ENDS = (130, -signal.SIGINT)


@pytest.mark.parametrize("delay", [0.1, 0.2, 0.35, 0.5, 0.8])
def test_an_interrupt_while_the_command_is_loaded_leaves_no_traceback(build, delay):
    line = [
        build.root / "bin/offpath",
        "bench",
        "overlap",
        "--no-namespaces",
        "--nodes",
        "9",
    ]  # refused as soon as the command has loaded
    run = subprocess.Popen(
        line,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    time.sleep(delay)
    run.send_signal(signal.SIGINT)
    said = run.communicate(timeout=60)[1]
    # The interrupt may come before the shell has started, or after the refusal.
    assert "Traceback" not in said and run.returncode in (*QUIET_ENDS, 2), said


def test_an_interrupt_behind_the_last_words_leaves_no_traceback(build):
    line = [build.root / "bin/offpath", "bench", "overlap", "--no-namespaces", "--nodes", "9"]
    for delay in (0, 0.002, 0.01):
        run = subprocess.Popen(
            line, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        first = run.stderr.readline()
        time.sleep(delay)
        run.send_signal(signal.SIGINT)
        said = first + run.communicate(timeout=60)[1]
        assert "Traceback" not in said and run.returncode in (*QUIET_ENDS, 2), said


def test_an_interrupt_while_an_error_is_printed_leaves_no_traceback():
    program = """
import sys
from offpath import cli, console

def interrupted(*_args, **_options):
    raise KeyboardInterrupt

console.err.print = interrupted
sys.argv = ["offpath", "bench", "overlap", "--no-namespaces", "--nodes", "9"]
sys.exit(cli.main())
"""
    line = [sys.executable, "-c", program]
    done = subprocess.run(line, env=environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 130 and "Traceback" not in done.stderr, done.stderr


def test_an_interrupt_that_is_passed_on_before_the_labs_command_runs_is_not_lost():
    for _ in range(5):
        control, interrupts = os.pipe()
        ended, status = os.pipe()
        os.write(interrupts, b"i")
        line = [sys.executable, "-m", "offpath.lab.init", "0-0", str(control), str(status), "--help"]
        done = subprocess.run(
            line, env=environment(), pass_fds=(control, status), capture_output=True, text=True, timeout=60
        )
        for descriptor in (control, interrupts, ended, status):
            os.close(descriptor)
        assert done.returncode == 130 and not done.stdout and "Traceback" not in done.stderr, done.stderr


def test_a_python_module_that_is_run_leaves_no_traceback_either():
    run = subprocess.Popen(
        command("--help"),
        env=environment(PYTHONVERBOSE="1"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in run.stderr:
        if "import 'typer" in line:
            break
    run.send_signal(signal.SIGINT)
    said = run.communicate(timeout=60)[1]
    assert "Traceback" not in said and run.returncode in QUIET_ENDS, said[-2000:]


def test_after_the_users_own_interrupt_no_failure_is_explained(build, short_folder):
    """The device says that its clients are gone, which the user knows. No operation moves to the host."""
    job = ["mpirun", "--oversubscribe", "-n", "2", build.program("offpath-bench-mpi"), "latency"]
    more = ["--op", "ialltoall", "--bytes", "1M", "--iterations", "1000000", "--json", "-"]
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    run = subprocess.Popen(
        command("run", "--", *map(str, job), *more),
        env=environment(**root, TMPDIR=str(short_folder), OFFPATH_REFINE="off"),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert eventually(lambda: _has_outstanding_operations(short_folder))
    os.killpg(run.pid, signal.SIGINT)
    said = run.communicate(timeout=60)[1]
    assert run.returncode != 0 and "the job failed" not in said and "Traceback" not in said, said


def _has_outstanding_operations(sessions) -> bool:
    """Whether a daemon of a session there has operations that have not ended."""
    daemons = {pid for session in sessions.glob("offpath-run-*") for pid in daemons_of(session)}
    pages = [page for page in status_page.find() if page.process in daemons]
    return any(proxy.outstanding > 0 for page in pages for proxy in page.read().proxies)
