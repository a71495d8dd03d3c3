"""Detecting the MPI that a program uses, and starting its job accordingly."""

import os
import shutil
import subprocess
import sys

import pytest

from offpath import launch, mpi_library
from offpath.artifacts import Artifacts
from offpath.errors import OffpathError

ROOT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}
ANY_SIZE = ROOT | {"OFFPATH_MIN_BYTES": "0"}


@pytest.fixture(params=["openmpi", pytest.param("mpich", marks=pytest.mark.other_mpi)])
def program(request, build):
    """The MPI, a program that uses it, and the name of a launcher that belongs to it."""
    if request.param == "mpich" and shutil.which("mpiexec.mpich") is None:
        pytest.skip("MPICH is not installed")
    path = build.program("mpi_finalize_test" if request.param == "openmpi" else "mpich_finalize_test")
    return request.param, str(path), shutil.which(f"mpiexec.{request.param}") or "mpiexec"


@pytest.mark.parametrize(("library", "kind"), [
    ("libmpi.so.40", "openmpi"), ("libmpi.so", "openmpi"), ("/usr/lib/libmpich.so.12", "mpich"),
    ("libmpi.so.12", "an MPI with MPICH's common ABI"), ("libmpi_abi.so.1", "abi"),
    ("libmpi_cxx.so.40", None), ("libmpifort.so.12", None), ("libc.so.6", None),
])  # fmt: skip
def test_libraries_are_known_by_their_names(library, kind):
    assert mpi_library.kind_of(library) == kind


def test_a_program_tells_behind_any_launcher_and_wrapper(program):
    kind, path, launcher = program
    for command in (
        [path],
        [launcher, "-n", "2", path, "x"],
        ["srun", "-n2", "env", "A=b", path],
        ["timeout", "5", path],
    ):
        assert mpi_library.of_job(command, None) == kind, command


def test_another_mpi_than_the_programs_is_refused(program):
    kind, path, launcher = program
    other = "mpich" if kind == "openmpi" else "openmpi"
    with pytest.raises(OffpathError, match=f"--mpi {other}: .* uses") as caught:
        mpi_library.of_job([launcher, "-n", "2", path], other)
    assert f"--mpi {kind}" in caught.value.hint
    assert mpi_library.of_job([launcher, "-n", "2", path], kind) == kind
    assert mpi_library.of_job([launcher, "-n", "2", path], "none") == "none"
    assert mpi_library.of_job([launcher, "-n", "2", "true"], other) == other


def test_a_script_tells_by_what_it_starts(program, tmp_path):
    kind, path, launcher = program
    script = tmp_path / "job.sh"
    script.write_text(f"#!/bin/sh\n# a comment with 'one quote\necho start\nexec {path} --fast\n")
    script.chmod(0o755)
    assert mpi_library.of_job(["srun", str(script)], None) == kind
    script.write_text(f"#!/usr/bin/env sh\n{launcher} -n 2 $PROGRAM\n")
    assert mpi_library.of_job([str(script)], None) == kind


def test_python_tells_by_its_mpi4py(program, tmp_path, monkeypatch):
    kind, path, _ = program
    package = tmp_path / "mpi4py"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "MPI.so").symlink_to(path)  # needs the same libraries as the program
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert mpi_library.of_job(["srun", sys.executable, "x.py"], None) == kind
    script = tmp_path / "tool"
    script.write_text(f"#!{sys.executable}\n")
    script.chmod(0o755)
    assert mpi_library.of_job([str(script)], None) == kind


def test_the_launcher_counts_where_no_program_tells_and_the_user_always(program):
    kind, path, launcher = program
    assert mpi_library.of_job([launcher, "-n", "1", "sh", "-c", "true"], None) == kind
    assert mpi_library.of_job(["true"], "mpich") == "mpich"
    with pytest.raises(OffpathError, match="cannot be told") as refused:
        mpi_library.of_job(["srun", "true"], None)
    assert "--mpi" in refused.value.hint
    assert mpi_library.of_job(["true"], None) == "none"
    with pytest.raises(OffpathError, match="not known"):
        mpi_library.of_job([path], "lam")


def test_a_launcher_of_the_other_mpi_is_replaced_or_refused(program):
    kind, _, launcher = program
    other = "mpich" if kind == "openmpi" else "openmpi"
    assert mpi_library.start_with([launcher, "x"], kind) == [launcher, "x"]
    assert mpi_library.start_with(["srun", "x"], other) == ["srun", "x"]
    if shutil.which(f"mpiexec.{other}"):
        with pytest.raises(OffpathError, match=mpi_library.KINDS[other]):
            mpi_library.start_with([launcher, "x"], other)
    if kind == "mpich" and mpi_library.launcher_kind("mpirun") == "openmpi":
        assert mpi_library.start_with(["mpirun", "-n", "2", "x"], "mpich")[1:] == ["-n", "2", "x"]


def test_hydra_preloads_the_ranks_only():
    command, environment = launch.prepare(
        ["mpiexec.mpich", "-n", "2", "x"], {"LD_PRELOAD": "/l.so", "OFFPATH": "on"}, {"PATH": "/bin"}, "mpich"
    )
    assert command == ["mpiexec.mpich", "-genv", "LD_PRELOAD", "/l.so", "-n", "2", "x"] and environment == {
        "PATH": "/bin",
        "OFFPATH": "on",
    }


def test_the_abi_needs_a_front_end_of_its_own_and_keeps_its_launcher(tmp_path):
    with pytest.raises(OffpathError, match="MPI ABI is not built") as refused:
        Artifacts(tmp_path).front_end("abi")
    assert "OFFPATH_MPI_ABI_ROOT" in refused.value.hint
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/liboffpath-mpi-abi.so").touch()
    assert Artifacts(tmp_path).front_end("abi") == tmp_path / "lib/liboffpath-mpi-abi.so"
    for launcher in filter(None, map(shutil.which, ("mpiexec.mpich", "mpirun.openmpi"))):
        assert mpi_library.start_with([launcher, "x"], "abi") == [launcher, "x"]
        command, environment = launch.prepare([launcher, "x"], {"LD_PRELOAD": "/l.so"}, {}, "abi")
        handed_over = (
            "-genv" in command
            if "mpich" in launcher
            else "LD_PRELOAD=/l.so" in environment["OMPI_MCA_mca_base_env_list"]
        )
        assert handed_over and "LD_PRELOAD" not in environment


VERSIONED = """
#include <stdio.h>
int MPI_Get_library_version(char* text, int* length) { return *length = sprintf(text, "%s"), 0; }
"""


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        pytest.param("MPICH Version:\t5.0.2\nMPICH Release date: 2026", "mpich", marks=pytest.mark.other_mpi),
        ("Intel(R) MPI Library 2021.9", None),
    ],
)
def test_a_library_whose_name_is_shared_is_asked_who_it_is(tmp_path, build, version, kind):
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    text = version.replace("\t", "\\t").replace("\n", "\\n")
    (tmp_path / "mpi.c").write_text(VERSIONED % text)
    (tmp_path / "main.c").write_text(
        "int MPI_Get_library_version(char*, int*);\n"
        "int main(void) { return MPI_Get_library_version(0, 0); }\n"
    )
    cc, library, path = ["cc", "-w"], tmp_path / "libmpi.so.12", tmp_path / "main"
    subprocess.run(
        [*cc, "-shared", "-fPIC", "-Wl,-soname,libmpi.so.12", "-o", library, tmp_path / "mpi.c"], check=True
    )
    subprocess.run([*cc, "-o", path, tmp_path / "main.c", library, f"-Wl,-rpath,{tmp_path}"], check=True)
    if kind is None:
        with pytest.raises(OffpathError, match="Intel"):
            mpi_library.of_job([str(path)], None)
        return
    assert mpi_library.of_job([str(path)], None) == kind
    if shutil.which("mpiexec.mpich") is None:
        pytest.skip("MPICH is not installed")
    mpich = build.front_end("mpich")
    made_for = next(name for name, _ in mpi_library._needs(mpich) if mpi_library.kind_of(name))
    if made_for == "libmpi.so.12":
        mpi_library.check_front_end([str(path)], mpich)
        return
    with pytest.raises(OffpathError, match=f"libmpi.so.12, and .* {made_for}") as refused:
        mpi_library.check_front_end(["srun", str(path)], mpich)
    assert "OFFPATH_MPICH_LIBRARY" in refused.value.hint


def test_run_loads_nothing_before_what_has_no_mpi_and_says_so(offpath):
    done = offpath("run", "--", "sh", "-c", "echo preload:$LD_PRELOAD", LD_PRELOAD="")
    assert (
        done.stdout.strip() == "preload:"
        and "--mpi" in done.stderr
        and "there is nothing to do" in done.stderr
    )
    done = offpath("run", "--", "mpirun", "-n", "1", "true", **ROOT)
    assert done.returncode == 0 and "there was nothing to do" in done.stderr, done.stderr


def test_run_picks_front_end_and_launcher(offpath, program):
    _, path, _ = program
    done = offpath("run", "--", "mpirun", "-n", "2", path, **ANY_SIZE)
    assert (
        done.returncode == 0
        and "offpath: offloaded 2 of 2" in done.stderr
        and "nothing to do" not in done.stderr
    ), done.stderr


def test_shell_lines_of_env_are_all_that_a_job_needs(offpath, program, build, tmp_path):
    kind, path, launcher = program
    lines = offpath("env", "--mpi", kind).stdout
    assert f"LD_PRELOAD={build.front_end(kind)}" in lines
    environment = (
        {name: value for name, value in os.environ.items() if not name.startswith("OFFPATH")}
        | ANY_SIZE
        | {"OFFPATH_DIR": str(tmp_path)}
    )
    done = subprocess.run(
        ["sh", "-c", f'eval "$1"; exec {launcher} -n 2 {path}', "sh", lines],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0 and "offpath: offloaded 2 of 2" in done.stderr, done.stderr
    assert offpath("env", "--mpi", "lam").returncode == 2


def test_a_build_in_a_directory_with_spaces_is_loaded(offpath, program, build, tmp_path):
    kind, path, launcher = program
    elsewhere = tmp_path / "a build"
    for source in (build.front_end(kind), build.daemon):
        target = elsewhere / source.relative_to(build.root)
        target.parent.mkdir(parents=True)
        shutil.copy2(source, target)
    (tmp_path / "daemons").mkdir()
    environment = (
        {name: value for name, value in os.environ.items() if not name.startswith("OFFPATH")}
        | ANY_SIZE
        | {"OFFPATH_DIR": str(tmp_path / "daemons")}
    )
    lines = offpath("env", "--mpi", kind, OFFPATH_BUILD=str(elsewhere)).stdout
    done = subprocess.run(
        ["sh", "-c", f'eval "$1"; exec {launcher} -n 2 {path}', "sh", lines],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0 and "offpath: offloaded 2 of 2" in done.stderr, done.stderr
    done = offpath("run", "--", launcher, "-n", "2", path, **ANY_SIZE, OFFPATH_BUILD=str(elsewhere))
    assert done.returncode == 0 and "offpath: offloaded 2 of 2" in done.stderr, done.stderr
