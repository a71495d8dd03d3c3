"""The plug-in for Slurm, with Slurm's own daemons on the nodes of a lab."""

import os
import re
from pathlib import Path

import pytest

from conftest import eventually
from offpath.units import format_cpus
from slurm_user import CORES, OFFLOADED, cpus


def test_srun_offloads_by_one_option(slurm):
    done = slurm.run("srun", "--mpi=pmix", "--offpath", "-N2", "--exclusive", *slurm.fft3d())
    assert done.returncode == 0 and "verification passed" in done.stdout, done.stderr
    assert OFFLOADED.search(done.stderr), done.stderr


def test_without_the_option_nothing_changes(slurm):
    done = slurm.run("srun", "-N2", "--exclusive", "sh", "-c", "env | grep -E '^(OFFPATH|LD_PRELOAD)'; true")
    assert done.stdout.split() == ["OFFPATH_MIN_BYTES=0"] * 2 and not done.stderr


@pytest.mark.other_mpi
def test_a_program_with_mpich_starts_by_pmi2(slurm):
    if not Path(slurm.program("fft3d-mpich")).exists():
        pytest.skip("MPICH is not installed")
    done = slurm.run("srun", "--mpi=pmi2", "--offpath", "-N2", "--exclusive", *slurm.fft3d("fft3d-mpich"))
    assert done.returncode == 0 and "verification passed" in done.stdout, done.stderr
    assert OFFLOADED.search(done.stderr), done.stderr


def test_a_batch_script_offloads_its_steps(slurm, tmp_path):
    script = tmp_path / "job.sh"
    script.write_text(
        "#!/bin/sh\n#SBATCH --offpath\n#SBATCH --nodes=2 --exclusive\n"
        "export OFFPATH_VERBOSE=1\n"
        f"srun {' '.join(slurm.fft3d())}\n"
        f"echo second >&2; srun --offpath=off {' '.join(slurm.fft3d())}\n"
    )
    done = slurm.run("sbatch", f"--output={tmp_path}/out", str(script))
    assert done.returncode == 0 and eventually(lambda: not slurm.shell("squeue -h"), 60), done.stderr
    said = (tmp_path / "out").read_text()
    first, second = said.split("second\n")
    assert OFFLOADED.search(first) and "verification passed" in first, said
    assert "offpath:" not in second and "verification passed" in second, said


def test_variables_go_through_and_win(slurm):
    program = slurm.fft3d()
    done = slurm.run("srun", "--offpath", "-N2", "--exclusive", *program, OFFPATH_MIN_BYTES="1073741824")
    assert done.returncode == 0 and "offpath: offloaded 0 of" in done.stderr, done.stderr
    done = slurm.run("srun", "--offpath", "-N2", "--exclusive", *program, OFFPATH="off")
    assert done.returncode == 0 and "offpath:" not in done.stderr, done.stderr


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two cores")
def test_the_device_has_a_core_of_the_allocation_for_itself(slurm):
    for words in (
        "srun -N2 --exclusive",
        "srun -N2 --exclusive --cpu-bind=none",
        # The step has one core of the job's.
        "salloc -Q -N2 --exclusive srun -n2 --exact --cpus-per-task=1",
    ):
        done = slurm.run(*words.split(), "--offpath=mpi=none", "sh", "-c", CORES)
        lines = sorted(done.stdout.splitlines())
        assert len(lines) == 2, done.stderr
        for node, line in enumerate(lines):
            rank, device = re.fullmatch(rf"node{node} rank (\S+) device (\S+) 0 0 \d+", line).groups()
            assert not cpus(rank) & cpus(device), line
            assert device == format_cpus(sorted(cpus(device))) and max(cpus(device)) == os.cpu_count() - 1, (
                line
            )


def test_a_step_without_a_free_core_is_told(slurm):
    done = slurm.run("srun", "--offpath=mpi=none", "-N2", "sh", "-c", CORES)
    assert done.stderr.count("the step has no core that its tasks leave free") == 2, done.stderr


def waiting_job(slurm, tmp_path) -> str:
    """A job with a step that has devices on two nodes and does not end. Returns its number."""
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\nsrun --offpath=mpi=none -N2 -n4 sleep 600\n")
    done = slurm.run("sbatch", "--parsable", "-N2", "--exclusive", f"--output={tmp_path}/out", str(script))
    assert eventually(lambda: len(slurm.daemons()) == 2, 30), done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("how", ["scancel {}", "scancel {}.0", "pkill -KILL -f 'sleep 60[0]'"])
def test_the_daemons_end_with_the_step(slurm, tmp_path, how):
    number = waiting_job(slurm, tmp_path)
    slurm.shell(how.replace("{}", number))
    assert eventually(lambda: not slurm.daemons(), 20), slurm.shell("ps -ef")


def test_the_daemons_end_if_slurm_is_killed(slurm, tmp_path):
    """Slurm then leaves the tasks, and the plug-in an empty directory."""
    number = waiting_job(slurm, tmp_path)
    slurm.shell("pkill -KILL slurmstepd")
    assert eventually(lambda: not slurm.daemons(), 20), slurm.shell("ps -ef")
    slurm.shell(f"scancel {number}; pkill -KILL -f 'sleep 60[0]'; rmdir {slurm.room}/steps/*")


def test_the_device_runs_as_the_user_and_like_a_task(slurm, ordinary_user):
    """slurmstepd itself is protected from the OOM killer."""
    done = slurm.run(
        "srun", "--offpath=mpi=none", "-N2", "--exclusive", "--chdir=/", "sh", "-c", CORES, user=ordinary_user
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 2 and all(line.split()[-3:-1] == [str(ordinary_user), "0"] for line in lines), (
        lines,
        done.stderr,
    )


def test_a_value_that_is_too_long_counts_as_none(slurm):
    done = slurm.run(
        "srun", "--offpath=mpi=none", "-N2", "--exclusive", "true", OFFPATH_DAEMON_LOG_LEVEL="x" * 40
    )
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_words_that_are_not_known_are_refused(slurm):
    done = slurm.run("srun", "--offpath=cores=many", "-N2", "true")
    assert done.returncode != 0 and "cores=many is not known" in done.stderr
