"""The programs also refuse, before they measure, a result file that cannot be written."""

import subprocess

import pytest

from conftest import environment
from offpath.errors import OffpathError

# Each command would measure for longer than the test waits, or fail for want of a daemon.
LONG = {
    "offpath-bench-mpi": ["latency", "--op", "ialltoall", "--bytes", "64M", "--iterations", "100000"],
    "fft3d": ["--n", "128", "--iterations", "10000"],
    "ring-hpl": ["--n", "20000"],
    "bspmm": ["--variant", "mpi-rma", "--iterations", "100000"],
    "offpath-bench-osu": ["--test", "allgather", "--seconds", "60"],
    "offpath-bench-primitives": ["--seconds", "60"],
    "offpath-bench-shmem": ["--seconds", "60"],
}


@pytest.mark.parametrize("program", LONG)
def test_json_in_a_missing_folder_is_refused_before_measuring(build, program, tmp_path):
    try:
        path = build.program(program)
    except OffpathError as error:
        pytest.skip(str(error))
    line = [path, *LONG[program], "--json", str(tmp_path / "missing/x.json")]
    done = subprocess.run(
        line, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=50
    )
    assert done.returncode == 2 and "missing/x.json" in done.stderr, done.stderr
