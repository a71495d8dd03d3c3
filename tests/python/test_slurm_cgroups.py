"""The plug-in for Slurm, where Slurm confines steps to their cores by control groups."""

import os

import pytest

from conftest import environment, eventually
from slurm_user import OFFLOADED, cpus, running

# Prints a task's control group, then its device's, each with its cores.
GROUPS = """
about() {
    group=$(sed -n 's/^[0-9]*:cpuset:\\/slurm_node[01]//p' /proc/$1/cgroup)
    echo "$group $(cat /sys/fs/cgroup/cpuset/slurm_$(hostname)$group/cpuset.cpus)"
}
echo "$(about self) $(about $(cat "$OFFPATH_DIR"/*.pid))"
"""
several_cores = pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two cores")


@pytest.fixture(scope="module")
def slurm_cluster(build, namespaces):
    with running(build, environment(), confines=True) as cluster:
        yield cluster


def groups(text: str) -> list[tuple[str, set[int], str, set[int]]]:
    """By task: its group below the user's, the group's cores, and both of its device."""
    found = []
    for line in text.splitlines():
        task, cores, device, device_cores = line.split()
        found.append((task.split("/", 2)[2], cpus(cores), device.split("/", 2)[2], cpus(device_cores)))
    return found


def test_ranks_of_a_node_share_its_device(slurm):
    done = slurm.run("srun", "--offpath", "-N2", "-n4", *slurm.fft3d())
    assert done.returncode == 0 and "verification passed" in done.stdout, done.stderr
    assert OFFLOADED.search(done.stderr), done.stderr


@several_cores
def test_a_device_is_confined_as_the_tasks_of_its_step(slurm):
    done = slurm.run("srun", "--offpath=mpi=none", "-N2", "-n4", "--overcommit", "sh", "-c", GROUPS)
    tasks = groups(done.stdout)
    assert len(tasks) == 4, done
    for task, cores, device, device_cores in tasks:
        assert task == device and task.endswith("/step_0"), tasks
        assert cores == device_cores and len(cores) < os.cpu_count(), tasks


@several_cores
def test_a_device_beside_its_step_is_confined_to_the_job(slurm):
    words = "salloc -Q -N2 --exclusive srun -n2 --exact --cpus-per-task=1 --offpath=mpi=none"
    done = slurm.run(*words.split(), "sh", "-c", GROUPS)
    tasks = groups(done.stdout)
    assert len(tasks) == 2 and not done.stderr, done
    for task, cores, device, device_cores in tasks:
        assert task == f"{device}/step_0" and device.startswith("job_"), tasks
        assert cores < device_cores == set(range(os.cpu_count())), tasks


def test_nothing_of_a_job_runs_outside_its_step(slurm, tmp_path):
    """The plug-in asks programs that are called python which MPI they use. This one leaves a process."""
    tmp_path.chmod(0o755)
    program = tmp_path / "python-of-the-job"
    program.write_text(
        "#!/bin/sh\n"
        "group=$(sed -n 's/^[0-9]*:\\(cpuset\\|freezer\\):/\\1/p' /proc/self/cgroup | sort | tr '\\n' ' ')\n"
        '[ "$1" = -c ] || exec echo "$(hostname) $group"\n'
        f'echo "$(hostname) $group" >>{tmp_path}/asked\n'
        f"setsid sleep 86{os.getpid()} </dev/null >/dev/null 2>&1 &\n"
    )
    program.chmod(0o755)
    done = slurm.run("srun", "--offpath", "-N2", "-n4", "--overcommit", str(program))
    assert done.returncode == 0 and "no MPI library is seen" in done.stderr, done
    tasks = set(done.stdout.splitlines())
    asked = (tmp_path / "asked").read_text().splitlines()
    assert len(asked) == 2 and set(asked) <= tasks, (asked, tasks)
    assert all("/step_0" in line for line in asked), asked
    assert eventually(lambda: not slurm.shell(f"pgrep -xf 'sleep 86{os.getpid()}'"), 30)
    assert not slurm.daemons()


def test_a_job_that_is_cancelled_leaves_no_group(slurm):
    """The fixture looks for groups, too."""
    ready = f"[ $(ls {slurm.room}/steps/*/*.pid | wc -l) = 2 ]"
    slurm.shell(
        "srun --offpath=mpi=none -N2 -n4 sleep 600 &"
        f"until {ready}; do sleep 0.05; done; scancel --user=root; wait"
    )
    assert not slurm.daemons()
