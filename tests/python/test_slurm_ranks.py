"""The plug-in for Slurm, with several ranks on a node."""

import os
import re
import sys
from pathlib import Path

import pytest

from conftest import eventually
from slurm_user import CORES, OFFLOADED, cpus

SHARED = "the step has no core that its tasks leave free"
# How the ranks of each MPI start, and the program with it.
LAUNCHES = {"pmix": "fft3d", "pmi2": "fft3d-mpich"}
# Ends when the ranks exchange data. No rank is in MPI_Init then.
COMMUNICATES = """
import sys, time
from offpath import status_page

for _ in range(500):
    proxies = [proxy for page in status_page.find() for proxy in page.read().proxies]
    if sum(proxy.schedules_run for proxy in proxies) > 200:
        sys.exit(0)
    time.sleep(0.1)
sys.exit(1)
"""
several_cores = pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two cores")


@pytest.fixture(params=["pmix", pytest.param("pmi2", marks=pytest.mark.other_mpi)])
def launch(request, slurm) -> tuple[str, str]:
    """The option of srun and the program."""
    if not Path(slurm.program(LAUNCHES[request.param])).exists():
        pytest.skip("MPICH is not installed")
    return f"--mpi={request.param}", LAUNCHES[request.param]


def places(text: str) -> dict[str, list[tuple[set[int], set[int], str]]]:
    """By node, what each task has printed with CORES: its cores, the device's, and the device's process."""
    found: dict[str, list[tuple[set[int], set[int], str]]] = {}
    for node, rank, device, process in re.findall(r"(\S+) rank (\S+) device (\S+) \d+ \d+ (\d+)\n", text):
        found.setdefault(node, []).append((cpus(rank), cpus(device), process))
    return found


@pytest.mark.parametrize("nodes", [1, 2])
def test_ranks_of_a_node_share_its_device(slurm, launch, nodes):
    option, program = launch
    done = slurm.run("srun", option, "--offpath", f"-N{nodes}", "--ntasks-per-node=2", *slurm.fft3d(program))
    assert done.returncode == 0 and "verification passed" in done.stdout, done.stderr
    assert f" {2 * nodes} ranks" in done.stdout and OFFLOADED.search(done.stderr), done.stderr


@several_cores
def test_messages_in_a_batch_job_name_their_nodes(slurm, tmp_path):
    words = ["--wait", "-N2", "--ntasks-per-node=2", "--wrap=srun --offpath=mpi=none true"]
    slurm.run("sbatch", f"--output={tmp_path}/out", *words)
    said = (tmp_path / "out").read_text()
    assert [said.count(f"offpath: node{i}: {SHARED}") for i in (0, 1)] == [1, 1], said


@several_cores
def test_a_device_whose_core_no_task_has_is_for_itself(slurm):
    words = "salloc -Q -N2 --exclusive srun -n4 --overcommit --cpu-bind=map_cpu:0 --offpath=mpi=none"
    done = slurm.run(*words.split(), "sh", "-c", CORES)
    of_nodes = places(done.stdout)
    assert not done.stderr and sorted(of_nodes) == ["node0", "node1"], done
    for tasks in of_nodes.values():
        assert len(tasks) == 2 and len({process for _, _, process in tasks}) == 1, tasks
        for rank, device, _ in tasks:
            assert rank == {0} and 0 not in device and max(device) == os.cpu_count() - 1, tasks


@several_cores
@pytest.mark.parametrize("bound", ["--cpu-bind=none", "--cpu-bind=cores"])
def test_tasks_that_need_all_cores_keep_them(slurm, bound):
    every = os.cpu_count()
    done = slurm.run("srun", "--offpath=mpi=none", "-N2", "-n2", f"-c{every}", bound, "sh", "-c", CORES)
    assert done.stderr.count(SHARED) == 2, done
    for tasks in places(done.stdout).values():
        assert [(rank, max(device)) for rank, device, _ in tasks] == [(set(range(every)), every - 1)], tasks


@several_cores
def test_tasks_that_are_bound_to_the_devices_core_are_told(slurm):
    """Slurm has a core that no task needs, but the user binds the tasks to another."""
    last = os.cpu_count() - 1
    words = f"srun -N2 --exclusive --cpu-bind=map_cpu:{last} --offpath=mpi=none true"
    done = slurm.run(*words.split())
    assert done.stderr.count(f"a task is bound to core {last} of the device") == 2, done


@several_cores
def test_jobs_side_by_side_have_devices_of_their_own(slurm):
    """Each job has one core of each node. Its tasks begin when all four devices are there."""
    both = f"{slurm.room}/job-both"
    there = f"[ -e {both} ] || {{ set -- {slurm.room}/steps/*; [ $# = 4 ]; }}"
    task = f"until {there}; do sleep 0.05; done; touch {both}; {CORES}\n"
    job = 'srun --offpath=mpi=openmpi -N2 -n4 --overcommit sh -c "$0" >$1/job-$job 2>&1'
    jobs = f"for job in 1 2; do {job} & done; wait; cat $1/job-*; rm $1/job-*"
    done = slurm.run("sh", "-c", jobs, f"{task}exec {' '.join(slurm.fft3d())}", slurm.room)
    assert done.stdout.count("verification passed") == 2, done
    assert len(OFFLOADED.findall(done.stdout)) == 2 and done.stdout.count(SHARED) == 4, done
    of_nodes = places(done.stdout)
    assert sorted(of_nodes) == ["node0", "node1"], done
    for tasks in of_nodes.values():
        devices = {process: device for _, device, process in tasks}
        assert len(tasks) == 4 and len(devices) == 2, tasks
        first, second = devices.values()
        assert not first & second, tasks
        assert all(rank == device for rank, device, _ in tasks), tasks


@several_cores
def test_devices_keep_off_the_cores_of_other_steps(slurm):
    """Two steps of a job have all cores of each node. The first has been there when the second begins."""
    step = "srun -n2 --exact --offpath=mpi=none --cpus-per-task"
    mark = f"{slurm.room}/job"
    script = f"""
        {step}={os.cpu_count() - 1} sh -c '
            echo "first $(eval "$CORES")"; touch {mark}-begun-$SLURM_PROCID
            until [ -e {mark}-over ]; do sleep 0.05; done' &
        until [ -e {mark}-begun-0 ] && [ -e {mark}-begun-1 ]; do sleep 0.05; done
        {step}=1 sh -c 'echo "late $(eval "$CORES")"'
        touch {mark}-over; wait; rm {mark}-*
    """
    done = slurm.run("salloc", "-Q", "-N2", "--exclusive", "sh", "-c", script, CORES=CORES)
    # The steps share the standard output, so their lines may come in any order.
    first, late = (places("".join(re.findall(f"{word} (.*\n)", done.stdout))) for word in ("first", "late"))
    assert sorted(first) == sorted(late) == ["node0", "node1"] and done.stderr.count(SHARED) == 2, done
    for node in first:
        [(_, device, one)], [(late_rank, late_device, another)] = first[node], late[node]
        assert one != another and device == late_rank == late_device, done.stdout


def test_a_step_ends_with_a_rank_that_dies(slurm, launch):
    """MPICH under PMI-2 leaves the other ranks waiting, so Slurm is asked to end them."""
    option, program = launch
    dies = f'{sys.executable} -c "$COMMUNICATES" && kill -KILL $$'
    task = f'[ $SLURM_PROCID != 1 ] || {{ {dies}; }} & exec "$0" --n 32 --iterations 1000000'
    words = ["--offpath=mpi=openmpi"] if program == "fft3d" else ["--offpath=mpi=mpich", "--kill-on-bad-exit"]
    line = ["srun", option, *words, "-N2", "-n4", "sh", "-c", task, slurm.program(program)]
    done = slurm.run(*line, COMMUNICATES=COMMUNICATES)
    # srun names tasks of a node that end alike in one line.
    killed = [cpus(tasks) for tasks in re.findall(r"tasks? ([\d,-]+): Killed", done.stderr)]
    assert done.returncode not in (0, 124) and any(1 in tasks for tasks in killed), done
    assert eventually(slurm.clean), slurm.shell(f"squeue; ps -ef; ls {slurm.room}/steps")


def test_a_device_stays_until_the_last_task_of_its_node_ends(slurm):
    """It starts beside the first one."""
    task = '[ $SLURM_LOCALID != 0 ] || exit 0; sleep 0.5; kill -0 $(cat "$OFFPATH_DIR"/*.pid) && echo lives'
    done = slurm.run("srun", "--offpath=mpi=none", "-N2", "-n4", "sh", "-c", task)
    assert done.returncode == 0 and done.stdout.split() == ["lives"] * 2, done
