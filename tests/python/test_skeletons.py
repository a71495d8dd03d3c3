"""Skeletons of programs: they call what the programs call, for any number of ranks, and the simulator replays
them."""

import collections
import json
import os
import subprocess

import pytest

from offpath import sim, skeletons
from offpath.artifacts import find_artifacts
from offpath.errors import OffpathError
from offpath.skeletons import bspmm, kernels
from offpath.skeletons.machine import Machine

ROOT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMP_NUM_THREADS": "1",
}
# What makes communicators, windows and memory; skeletons have these without a call.
MAKES = ("Cart_create", "Cart_sub", "Comm_free", "Win_allocate", "Win_free", "Alloc_mem", "Free_mem")


def _machine(ranks):
    return Machine(nodes=ranks, ranks_per_node=1, link_Bps=250e6, inside_Bps=5e9)


def _calls(profile):
    """A rank's calls in order, loops unrolled, without places and times. Tests with success are waits."""
    found = []

    def walk(sequence):
        for node in sequence:
            if isinstance(node, dict):
                for _ in range(node["times"]):
                    walk(node["body"])
                continue
            call = {
                key: value
                for key, value in profile["calls"][node[0]].items()
                if key not in ("site", "windows")
            }
            if call["call"] in MAKES or (call["call"] == "Wait" and not call.get("list")):
                continue
            if call["call"] == "Test":
                call["call"] = "Wait"
            if "comm" in call:
                call["comm"] = profile["communicators"][call["comm"]]["members"]
            found.append(call)

    walk(profile["sequence"])
    return found


def _profiles(folder):
    return [json.loads((folder / f"rank-{r}.json").read_text()) for r in range(len(list(folder.iterdir())))]


@pytest.fixture
def recorded(tmp_path):
    """Runs a program of the build under the profiler and returns the ranks' profiles."""
    artifacts = find_artifacts()
    try:
        library = artifacts.root / "lib/liboffpath-profile.so"
        artifacts.program("minimd")
    except OffpathError as error:
        pytest.skip(str(error))

    def record(line, ranks):
        folder = tmp_path / "recorded"
        program, *words = line.split()
        command = [
            "mpirun", "-n", str(ranks), "-x", f"LD_PRELOAD={library}", "-x", f"OFFPATH_PROFILE={folder}",
            str(artifacts.program(program)), *words,
        ]  # fmt: skip
        folder.mkdir()
        subprocess.run(command, env=os.environ | ROOT, capture_output=True, timeout=120, check=True)
        return _profiles(folder)

    return record


def _skeleton(line, ranks, folder):
    skeletons.write(line, _machine(ranks), kernels.read(None), folder)
    return _profiles(folder)


@pytest.mark.parametrize(
    ("line", "ranks"),
    [
        ("fft3d --n 30x17x25 --variables 5 --iterations 2 --no-verify", 6),
        ("fft3d --n 12 --iterations 1 --no-verify --no-overlap", 3),
        ("halo --dims 2 --size 1024 --steps 5 --variant nonblocking", 6),
        ("halo --dims 3 --size 24 --steps 5 --periodic", 8),
        ("ring-hpl --n 300 --nb 64 --variant mpi-ibcast", 3),
    ],
)
def test_skeletons_call_what_programs_call(recorded, tmp_path, line, ranks):
    for real, made in zip(recorded(line, ranks), _skeleton(line, ranks, tmp_path / "made"), strict=True):
        assert _calls(made) == _calls(real)


def test_ranks_of_a_ring_post_what_the_program_posts(recorded, tmp_path):
    # The moment at which MPI_Test finds something decides where the program completes it.
    line, ranks = "ring-hpl --n 300 --nb 64 --iterations 2", 4
    for real, made in zip(recorded(line, ranks), _skeleton(line, ranks, tmp_path / "made"), strict=True):
        posts = [[c for c in _calls(p) if not c["call"].startswith("Wait")] for p in (made, real)]
        assert posts[0] == posts[1]


def _accesses(profiles):
    """For each rank: how often it makes which call, and how often it is the target of which."""
    made = [collections.Counter(call["call"] for call in _calls(profile)) for profile in profiles]
    met = [collections.Counter() for _ in profiles]
    for profile in profiles:
        for call in _calls(profile):
            if call["call"] in ("Get", "Rget", "Accumulate", "Raccumulate"):
                met[call["peer"]][call["call"]] += 1
    return made, met


def _check_tiles(profiles, lookahead, iterations):
    """Which rank computes a unit is decided while the program runs, and with it which of the tiles are the
    rank's own, and how many ranks add to a tile of C. What is checked here holds for every schedule."""
    ranks = len(profiles)
    problem = bspmm.Problem(mesh=6, sparsity=None, seed=1, holders=ranks)
    runs = [problem.units[: 4 * ranks]] + iterations * [problem.units]
    get, add = ("Rget", "Raccumulate") if lookahead else ("Get", "Accumulate")
    made, met = _accesses(profiles)
    units = [_units(counts, lookahead, len(runs)) for counts in made]
    assert sum(units) == sum(map(len, runs))
    for rank in range(ranks):
        held = [sum(problem.holder[m][unit[m]] == rank for run in runs for unit in run) for m in (0, 1)]
        # A rank gets two tiles for each unit, but those that it holds. All others get them from it.
        assert 2 * units[rank] - made[rank][get] == sum(held) - met[rank][get]
        # A rank adds to a tile of C once in each run in which it computes some of the tile's units.
        least = most = 0
        for run in runs:
            of_tile = collections.Counter(c for _, _, c in run if problem.holder[2][c] == rank)
            least += len(of_tile)
            most += sum(min(ranks, number) for number in of_tile.values())
        assert least <= met[rank][add] <= most
        assert made[rank][add] <= units[rank]


def _units(counts, lookahead, runs):
    """How many units a rank has computed: it claims units until a claim is in vain. With a lookahead, it
    waits for the tiles of each unit, and for all sums at the end of a run."""
    return counts["Waitall"] - runs if lookahead else counts["Fetch_and_op"] - runs


@pytest.mark.parametrize("lookahead", [0, 2])
def test_ranks_of_bspmm_make_the_accesses_of_the_program_together(recorded, tmp_path, lookahead):
    line = f"--variant mpi-rma --mesh 6 --tile 8 --no-verify --iterations 2 --lookahead {lookahead}"
    totals = []
    for profiles in (recorded(f"bspmm-host {line}", 3), _skeleton(f"bspmm {line}", 3, tmp_path / "made")):
        counts = collections.Counter(call["call"] for profile in profiles for call in _calls(profile))
        sizes = {(c["call"], c["bytes"]) for p in profiles for c in p["calls"] if c.get("bytes", 0) > 0}
        totals.append((counts, sizes))
        _check_tiles(profiles, lookahead, iterations=2)
        # Which memory devices have mapped decides the way of small accesses.
        assert all(window["allocated"] == 1 for profile in profiles for window in profile["windows"])
        assert all(any(call["call"] == "Alloc_mem" for call in profile["calls"]) for profile in profiles)
    (real, real_sizes), (made, made_sizes) = totals
    assert made_sizes == real_sizes
    for call in ("Barrier", "Gather", "Win_lock_all", "Win_unlock_all", "Win_sync"):
        assert made[call] == real[call]
    # A rank that finds fewer units than it looks ahead has asked for some more in vain. On a busy machine,
    # two of the three ranks may find none, in the warm-up and in both iterations.
    in_vain = 2 * lookahead * 3
    assert made["Fetch_and_op"] <= real["Fetch_and_op"] <= made["Fetch_and_op"] + in_vain


def test_minimd_exchanges_as_many_ghosts_as_the_program(recorded, tmp_path):
    line, ranks = "minimd -s 16 -n 45", 6
    for real, made in zip(recorded(line, ranks), _skeleton(line, ranks, tmp_path / "made"), strict=True):
        moved = []
        for profile in (real, made):
            by_channel = collections.defaultdict(list)
            for call in _calls(profile):
                if call["call"] in ("Isend", "Irecv") and call["tag"] >= 120:
                    by_channel[call["call"], call["peer"], call["tag"]].append(call.get("bytes", 0))
            moved.append(by_channel)
        assert moved[0].keys() == moved[1].keys()
        # The crystal of the start is not spread evenly. It has melted after the first rebuild.
        melted = [{channel: sum(sizes[20:]) for channel, sizes in by.items()} for by in moved]
        for channel, sizes in moved[0].items():
            assert len(moved[1][channel]) == len(sizes)
            assert melted[1][channel] == pytest.approx(melted[0][channel], rel=0.3)
        assert sum(melted[1].values()) == pytest.approx(sum(melted[0].values()), rel=0.1)


@pytest.mark.parametrize("ranks", [1, 5])
@pytest.mark.parametrize("engine", ["host", "offpath"])
@pytest.mark.parametrize(
    "line",
    [
        "fft3d --n 32 --iterations 1",
        "halo --dims 3 --size 32 --steps 3 --variant nonblocking",
        "ring-hpl --n 1024 --nb 64",
        "ring-hpl --n 1024 --nb 64 --variant mpi-ibcast",
        "bspmm --mesh 6 --lookahead 1",
        "minimd -s 8 -n 25",
    ],
)
def test_skeletons_are_simulated(tmp_path, line, engine, ranks):
    spec = sim.SimSpec("lab", ranks, 1, "", 0, engine, options=("--repeatable",))
    found = skeletons.simulate(line, spec, find_artifacts(), None, tmp_path / "kept")
    assert found["program"] == line and found["ranks"] == ranks and found["unsupported"] == {}
    assert 0.9 * found["compute_s"] <= found["time_s"] < 60
    assert len(_profiles(tmp_path / "kept")) == ranks
    assert found == skeletons.simulate(line, spec, find_artifacts(), None, None)


def test_faster_kernels_and_more_ranks_shorten_a_skeleton(offpath, tmp_path):
    slow, fast = kernels.read(None), tmp_path / "fast.json"
    fast.write_text(json.dumps({name: value / 2 for name, value in slow.items()}))
    times = []
    for nodes, extra in ((2, []), (2, [f"--kernels={fast}"]), (8, [])):
        found = tmp_path / "f.json"
        done = offpath(
            "sim", "--platform=thor-bf2", f"--nodes={nodes}", "--skeleton=fft3d --n 128 --iterations 1",
            f"--json={found}", *extra,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "a rank computes" in done.stdout
        times.append(json.loads(found.read_text())["compute_s"])
    assert times[1] == pytest.approx(times[0] / 2) and times[2] == pytest.approx(times[0] / 4)


def test_a_study_shows_programs_by_the_number_of_nodes(offpath, tmp_path):
    found, picture = tmp_path / "f.json", tmp_path / "f.png"
    done = offpath(
        "study", "programs", "--nodes=4,2", "--ranks-per-node=1", "--skeleton=fft3d --n 64 --iterations 1",
        "--skeleton=minimd -s 8 -n 5", f"--json={found}", f"--plot={picture}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = json.loads(found.read_text())["rows"]
    assert [(row["program"].split()[0], row["nodes"]) for row in rows] == [
        ("fft3d", 2), ("fft3d", 4), ("minimd", 2), ("minimd", 4),
    ]  # fmt: skip
    for row in rows:
        assert row["gain_percent"] == pytest.approx(100 * (1 - row["offpath_s"] / row["host_s"]))
    assert picture.stat().st_size > 10_000
    for wrong, said in (("--nodes=5000", "4096 ranks"), ("--skeleton=fft3d --n x", "'x' is not accepted")):
        done = offpath("study", "programs", wrong)
        assert done.returncode == 2 and said in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--skeleton=nothing --n 4"], "'nothing' is not known"),
        (["--skeleton=fft3d --n 0"], "'0' is not accepted"),
        (["--skeleton=fft3d --m 4"], "--m 4"),
        (["--skeleton=fft3d --grid 2x2"], "needs 4 ranks"),
        (["--skeleton=halo --variant schedule"], "schedule"),
        (["--skeleton=halo --dims 1 --size 1"], "cannot be cut into 2 blocks"),
        (["--skeleton=bspmm --sparsity 1"], "less than 1"),
        (["--skeleton=minimd -s x"], "'x' is not accepted"),
        (["--skeleton=minimd", "--ranks-per-node=1024", "--nodes=5"], "5120 ranks"),
        (["--skeleton=minimd", "--pattern=ring"], "not clear"),
        (["--skeleton=minimd '"], "is not understood"),
        (["--pattern=ring", "--kernels=k.json"], "belong to skeletons"),
        (["--skeleton=minimd", "--kernels=/nowhere/k.json"], "/nowhere/k.json"),
    ],
)
def test_wrong_skeletons_are_refused(offpath, arguments, said):
    done = offpath("sim", "--platform=lab", *arguments)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr


def test_a_platform_without_a_rate_is_refused(offpath, tmp_path):
    figures = sim.read_figures("lab")
    for wrong in (None, {"value": 0, "source": "a guess"}, {"value": "fast", "source": "a guess"}):
        file = tmp_path / "p.json"
        file.write_text(json.dumps(figures | {"inside_Bps": wrong}))
        done = offpath("sim", f"--platform={file}", "--skeleton=minimd")
        assert done.returncode == 2 and "inside_Bps" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[]", "an object is wanted"),
        ("{}", "fft3d.point_s: null is not accepted"),
        ('{"fft3d.point_s": -1}', "fft3d.point_s: -1 is not accepted"),
        ('{"fft.point_s": 1}', "fft.point_s is not known"),
    ],
)
def test_wrong_kernels_are_refused(tmp_path, content, said):
    file = tmp_path / "k.json"
    file.write_text(content)
    with pytest.raises(OffpathError, match="k.json") as caught:
        kernels.read(file)
    assert said in str(caught.value)
