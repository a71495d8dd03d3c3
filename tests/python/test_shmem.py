"""OpenSHMEM programs on nodes with names and networks of their own, and with devices that share no memory
with them."""

import pytest

pytestmark = pytest.mark.usefixtures("namespaces", "build")


def run(offpath, build, program: str, *options: str, user: int | None = None) -> str:
    done = offpath(
        "lab",
        "run",
        "--nodes",
        "2",
        "--link",
        "2gbit",
        # Beside other tests, a device may get no core for seconds. It is not lost then.
        "--env",
        "OFFPATH_LOST_AFTER_S=30",
        *options,
        "--",
        str(build.program(program)),
        user=user,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_data_move_within_and_between_nodes(offpath, build, user):
    assert "4 PEs: all right" in run(offpath, build, "shmem_core_test", "--ranks-per-node", "2", user=user)


def test_data_move_through_devices_of_their_own(offpath, build):
    """All of shmem_core_test with remote devices is shmem.core.remote of the compiled tests."""
    run(offpath, build, "shmem_threads_test", "--dpu", "remote")


def test_atomics_meet_at_devices_of_their_own(offpath, build):
    run(offpath, build, "shmem_atomics_test", "--dpu", "remote")
