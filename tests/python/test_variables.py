"""The front end reports environment variables that no part of offpath reads."""

import pytest

from offpath.errors import OffpathError

ROOT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}


@pytest.mark.parametrize(
    ("program", "arguments"),
    [("mpi_finalize_test", []), ("offpath-bench-shmem", ["--seconds", "0.001", "--sizes", "8"])],
)
def test_a_misspelt_variable_is_named_once_with_the_one_that_is_meant(offpath, build, program, arguments):
    try:
        path = build.program(program)
    except OffpathError as error:
        pytest.skip(str(error))
    done = offpath(
        "run",
        "--mpi",
        "openmpi",
        "--",
        "mpirun",
        "-n",
        "2",
        str(path),
        *arguments,
        **ROOT,
        OFFPATH_MINBYTES="0",
        OFFPATH_HOME="/opt/offpath",
    )
    assert done.returncode == 0, done.stderr
    assert (
        done.stderr.count("OFFPATH_MINBYTES is set, and nothing reads it; is OFFPATH_MIN_BYTES meant?\n") == 1
    ), done.stderr
    assert (
        done.stderr.count("OFFPATH_HOME is set, and nothing reads it\n") == 1
        and done.stderr.count("nothing reads it") == 2
    ), done.stderr
