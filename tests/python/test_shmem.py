"""OpenSHMEM programs on nodes with names and networks of their own, and with devices that share no memory
with them."""

import os

import pytest

from conftest import NOBODY

pytestmark = pytest.mark.usefixtures("namespaces", "build")

USERS = [pytest.param(None, id="self")] + (
    [pytest.param(NOBODY, id="unprivileged")] if os.geteuid() == 0 else []
)


def run(offpath, build, program: str, *options: str, user: int | None = None) -> str:
    done = offpath(
        "lab",
        "run",
        "--nodes",
        "2",
        "--link",
        "2gbit",
        *options,
        "--",
        str(build.program(program)),
        user=user,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("user", USERS)
def test_data_move_within_and_between_nodes(offpath, build, user):
    assert "4 PEs: all right" in run(offpath, build, "shmem_core_test", "--ranks-per-node", "2", user=user)


def test_data_move_through_devices_of_their_own(offpath, build):
    assert "2 PEs: all right" in run(offpath, build, "shmem_core_test", "--dpu", "remote")


def test_atomics_meet_at_devices_of_their_own(offpath, build):
    run(offpath, build, "shmem_atomics_test", "--dpu", "remote")
