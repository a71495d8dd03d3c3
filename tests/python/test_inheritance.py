"""What a job inherits: the user's arguments and variables, and nothing that only the command needs."""

import os
import subprocess

import pytest

ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
SHOW = 'echo "${PYTHONPATH-unset} ${OFFPATH_BUILD-unset} ${OFFPATH_COMMAND_BUILD-unset}"'


def test_ranks_find_the_programs_that_the_users_path_leads_to(offpath, build, tmp_path):
    (tmp_path / "python3").write_text("#!/bin/sh\necho my interpreter\n")
    (tmp_path / "python3").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = offpath("run", "--", "mpirun", "-n", "1", "python3", PATH=path, **ROOT)
    assert done.returncode == 0 and done.stdout == "my interpreter\n", done.stderr


@pytest.mark.parametrize("theirs", [{}, {"PYTHONPATH": "/my/modules:/more", "OFFPATH_BUILD": "/my/build"}])
@pytest.mark.parametrize(
    "way",
    [["run", "--", "mpirun", "-n", "1"], ["lab", "run", "-q", "--nodes", "1", "--"]],
    ids=["run", "lab"],
)
def test_the_commands_own_variables_do_not_reach_the_ranks(build, way, theirs):
    inherited = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "OFFPATH_BUILD")
    }
    line = [build.root / "bin/offpath", *way, "sh", "-c", SHOW]
    done = subprocess.run(
        line,
        env=inherited | ROOT | theirs,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.split() == [
        theirs.get("PYTHONPATH", "unset"),
        theirs.get("OFFPATH_BUILD", "unset"),
        "unset",
    ], done.stderr
