"""Signatures: a second run of a program starts from what the first has learned, and `offpath signatures`."""

import json
import subprocess

import pytest

from conftest import command, environment
from offpath import signatures, whole_cli
from offpath.errors import OffpathError

# It exchanges data in several sizes, with and without computing, and checks them on all ranks.
PROGRAM = "mpi_refinement_test"
LAUNCHER = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2"]
OF_JOB = {"OFFPATH_REFINE_AFTER": "4", "OFFPATH_AGREE_MS": "0", "OMPI_MCA_mpi_yield_when_idle": "1"}
LEARNED = "an earlier run of the program has learned this"


def job(build, **extra: str) -> subprocess.Popen:
    try:
        program = build.program(PROGRAM)
    except OffpathError as error:
        pytest.skip(str(error))
    return subprocess.Popen(
        command("run", "--mpi", "openmpi", "--", *LAUNCHER, str(program)),
        env=environment(**OF_JOB, **extra),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(process: subprocess.Popen) -> str:
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return errors


def test_a_second_run_starts_from_what_the_first_has_learned(build, tmp_path):
    where = tmp_path / "kept"
    settings = {"OFFPATH_SIGNATURES": str(where), "OFFPATH_EXPLAIN": "1"}
    assert LEARNED not in said(job(build, **settings))
    (path,) = where.iterdir()
    first = signatures.read(path)
    assert path.stem == first.id and first.content["runs"] == 1
    assert first.content["program"]["name"] == PROGRAM and first.content["ranks"] == 2
    assert first.content["learned"]

    # Two at a time read and write whole files, whichever of them ends first.
    both = [job(build, **settings), job(build, **settings)]
    for one in both:
        complaints = said(one)
        assert LEARNED in complaints and "[OFP-0205]" not in complaints
    assert list(where.iterdir()) == [path]
    assert signatures.read(path).content["runs"] in (2, 3)

    # Neither bits nor calls may depend on time here.
    fixed = job(build, **settings, OFFPATH_DETERMINISTIC="1")
    # A file that is cut off is ignored with one warning, and written anew.
    assert LEARNED not in said(fixed)
    path.write_text(path.read_text()[:-40])
    complaints = said(job(build, **settings))
    assert complaints.count("[OFP-0205]") == 1 and f"signature {path} is ignored: " in complaints
    assert LEARNED not in complaints
    assert signatures.read(path).content["runs"] == 1


def example(where, name="app", content="c0ffee", ranks=2):
    of_job = {"ranks": ranks, "nodes": 1}
    learned = {"op": "ialltoall", **of_job, "bytes": 131072, "calls": 900}
    learned |= {"phase": "waits", "computes": "device", "waits": "host"}
    learned |= {"host": {"exposed_s": 0.001, "elapsed_s": 0.002}}
    text = {
        "offpath_signature": 1,
        "program": {"name": name, "content": content},
        "mpi": "Open MPI v4.1.4",
        "platform": "a processor, 2 cores",
        **of_job,
        "runs": 2,
        "written": "2026-03-01T12:00:00+00:00",
        "learned": [learned],
    }
    path = where / f"{signatures.identify(text)}.json"
    signatures.write(text, path)
    return path


def test_signatures_are_listed_shown_shared_and_removed(tmp_path, monkeypatch, capsys):
    where = tmp_path / "kept"
    path, other = example(where), example(where, "solver", "decaf", 8)
    monkeypatch.setenv("OFFPATH_SIGNATURES", str(where))

    def run(*arguments: str) -> tuple[str, str]:
        whole_cli.app(["signatures", *arguments], standalone_mode=False)
        return capsys.readouterr()

    listed, _ = run("list")
    assert "app" in listed and "solver" in listed and path.stem[:8] in listed
    assert len(json.loads(run("list", "--json")[0])) == 2
    shown, _ = run("show", path.stem[:8])
    assert "MPI_Ialltoall" in shown and "1 of 2 ms" in shown and "not" in shown
    run("export", path.stem[:8], "-o", str(tmp_path / "shared.json"))
    run("remove", path.stem[:8])
    assert not path.exists() and other.exists()
    run("import", str(tmp_path / "shared.json"))
    assert json.loads(path.read_text())["learned"][0]["calls"] == 900

    path.write_text(path.read_text()[:100])
    listed, complaints = run("list")
    assert "solver" in listed and "cut off" in complaints and "[OFP-0804]" in complaints
    for arguments in (["import", str(path)], ["show", "zz"], ["remove"], ["remove", "zz"]):
        with pytest.raises(OffpathError):
            run(*arguments)
    run("remove", "--all")
    assert not list(where.glob("*.json")) and "no signatures" in run("list")[1]
