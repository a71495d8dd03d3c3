"""`offpath advise`, and `offpath sim --program`: profiles of small programs, and profiles that are wrong."""

import json
import shutil
from pathlib import Path

import pytest

from offpath import advise, advise_lab, advise_page, profiles
from offpath.artifacts import find_artifacts
from offpath.errors import OffpathError

ROOT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}
RANKS = 3
# Calls of each rank of tests/profile/profiled_program.cpp.
CALLS = {
    "Ialltoall": 10, "Test": 10, "Irecv": 30, "Isend": 30, "Waitall": 30, "Allreduce": 10, "Sendrecv": 10,
    "Send": 20_000, "Ssend": 20_000, "Recv": 1, "Barrier": 1, "Comm_split": 1, "Comm_free": 1,
    "Issend": 5, "Mprobe": 5, "Mrecv": 5, "Wait": 5,
}  # fmt: skip


def _program(mpi):
    return _built("profiled_program" + ("-mpich" if mpi == "mpich" else ""))


def _built(name):
    try:
        return find_artifacts().program(name)
    except OffpathError as error:
        pytest.skip(str(error))


def _nodes(sequence):
    for node in sequence:
        if isinstance(node, dict):
            yield from _nodes(node["body"])
        else:
            yield node


@pytest.mark.parametrize("mpi", ["openmpi", pytest.param("mpich", marks=pytest.mark.other_mpi)])
def test_a_program_is_profiled_and_replayed(offpath, tmp_path, mpi):
    program = _program(mpi)
    launcher = "mpirun" if mpi == "openmpi" else "mpiexec.mpich"
    if shutil.which(launcher) is None:
        pytest.skip(f"{launcher} is not there")
    profile, found, page = tmp_path / "p", tmp_path / "f.json", tmp_path / "f.html"
    done = offpath(
        "advise", f"--profile={profile}", f"--json={found}", f"--html={page}", "--platform=lab", "--",
        launcher, "-n", str(RANKS), str(program), **ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    advised = json.loads(found.read_text())
    assert {site["call"]: site["count"] for site in advised["sites"]} == {
        name: RANKS * count for name, count in CALLS.items()
    }
    sites = {site["call"]: site for site in advised["sites"]}
    assert sites["Ialltoall"]["bytes"] == RANKS * 10 * RANKS * 1000 and sites["Isend"]["bytes"] == 90_000
    assert set(advised["unsupported"]) == {"Comm_split", "Comm_free"}
    assert advised["host_s"] > 0 < advised["offpath_s"]
    assert "main" in sites["Isend"]["place"] or "profiled_program" in sites["Isend"]["place"]
    text = page.read_text()
    assert "<svg" in text and "MPI_Ialltoall" in text and "http-equiv" not in text
    # Two loops, one in the other, take one iteration's room.
    ranks = profiles.read(profile).ranks
    loops = [node for node in ranks[0]["sequence"] if isinstance(node, dict)]
    assert loops and loops[0]["body"]
    tests = sum(node[4] for node in _nodes(ranks[0]["sequence"]))
    assert (ranks[0]["polled_s"] > 0) == (tests > 0) and ranks[0]["polled_s"] < profiles.read(
        profile
    ).measured_s
    # The probe takes any message; what receives it names the one that came.
    taken = [call for call in ranks[0]["calls"] if call["call"] in ("Mprobe", "Mrecv")]
    assert [(call["call"], call["peer"], call["tag"]) for call in taken] == [
        ("Mprobe", -1, 7), ("Mrecv", RANKS - 1, 7),
    ]  # fmt: skip
    # The computation after many short calls is not theirs.
    counted = profiles.sites_of(profiles.read(profile)).values()
    before = {site.call: site.compute_s for site in counted}
    assert before["Barrier"] > before["Send"] + before["Ssend"]
    # The same profile again, by itself, and for the device's engine alone.
    again = offpath("advise", f"--profile={profile}", "--platform=thor-bf2", "--nodes=3")
    assert again.returncode == 0 and "3 ranks on 3 nodes of thor-bf2" in again.stdout, again.stderr
    alone = offpath("sim", "--platform=lab", f"--program={profile}", "--nodes=3", f"--json={found}")
    assert alone.returncode == 0 and "MPI_Comm_split" in alone.stderr, alone.stderr
    assert json.loads(found.read_text())["ranks"] == RANKS


@pytest.mark.parametrize("interface", ["mpif_h", "use_mpi", "f08"])
def test_a_fortran_program_is_profiled(offpath, tmp_path, interface):
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is not there")
    program = _built(f"mpi_fortran_messages_{interface}")
    profile = tmp_path / "profile"
    done = offpath(
        "advise", f"--profile={profile}", "--platform=lab", "--", "mpirun", "-n", "2", str(program), **ROOT
    )
    assert done.returncode == 0, done.stderr
    calls = {site.call for site in profiles.sites_of(profiles.read(profile)).values()}
    assert {"Isend", "Irecv", "Wait", "Sendrecv", "Mrecv", "Waitall"} <= calls


def test_a_prediction_is_verified_by_running_the_program(offpath, tmp_path, build):
    program = _program("openmpi")
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is not there")
    found = tmp_path / "f.json"
    done = offpath("advise", "--verify", f"--json={found}", "--", "mpirun", "-n", "2", str(program), **ROOT)
    assert done.returncode == 0, done.stderr
    assert "measured with offload: " in done.stdout
    verified = json.loads(found.read_text())["verified"]
    host, offloaded = verified["host_wall_s"], verified["offpath_wall_s"]
    assert host > 0 < offloaded
    assert verified["gain_percent"] == pytest.approx(100 * (host - offloaded) / host)
    nothing = offpath("advise", "--verify", f"--profile={tmp_path}")
    assert nothing.returncode == 2 and "--verify runs the program, and none is named" in nothing.stderr


def _written(folder, change=lambda rank: None):
    """A right profile of two ranks that exchange a message, after `change`."""
    folder.mkdir()
    for rank in (0, 1):
        found = {
            "format": "offpath-profile", "version": 1, "rank": rank, "ranks": 2, "program": "p", "node": "n",
            "begin_s": 1.0, "end_s": 2.0, "offset_s": [0, 0],
            "preempted_s": 0, "compute_at_end_s": 0, "lost": 0,
            "communicators": [{"occurrence": 0, "rank": rank, "members": [0, 1]}],
            "sites": [None],
            "calls": [
                {
                    "call": ["Send", "Recv"][rank], "site": 0, "comm": 0, "peer": 1 - rank, "tag": 0,
                    "bytes": 100_000,
                }
            ],
            "sequence": [{"times": 4, "body": [[0, 4, 0.01, 0.02, 0]]}],
            "arrivals": {"stride": 1, "entries": []},
        }  # fmt: skip
        change(found)
        (folder / f"rank-{rank}.json").write_text(json.dumps(found))
    return folder


def test_loops_are_replayed(offpath, tmp_path):
    _written(tmp_path / "p")
    found = tmp_path / "f.json"
    done = offpath("sim", "--platform=thor-bf2", f"--program={tmp_path / 'p'}", f"--json={found}")
    assert done.returncode == 0, done.stderr
    result = json.loads(found.read_text())
    assert [(rank, call, count) for rank, call, count, _ in result["calls"]] == [(0, 0, 4), (1, 0, 4)]
    # Four messages at 12.5 GB/s after 10 ms of computation.
    assert 0.01 + 4 * 1e5 / 12.5e9 < result["time_s"] < 0.013


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda found: found.pop("end_s"), "rank-0.json: end_s: is missing"),
        (lambda found: found["calls"][0].pop("call"), "rank-0.json: calls[0].call: is missing"),
        (
            lambda found: found["sequence"][0]["body"][0].__setitem__(2, -0.5),
            "rank-0.json: sequence[0].body[0] (compute_s): -0.5",
        ),
        (lambda found: found.update(version=7), "rank-0.json: version: 7"),
        (lambda found: found["calls"][0].update(comm=3), "rank-0.json: calls[0].comm: 3"),
        (lambda found: found["calls"][0].update(peer=2), "rank-0.json: calls[0].peer: 2"),
        (lambda found: found.update(lost=-1), "rank-0.json: lost: -1"),
        (lambda found: found["sequence"][0]["body"][0].__setitem__(0, 9), "sequence[0].body[0] (call): 9"),
    ],
)
def test_wrong_profiles_are_named(offpath, tmp_path, change, said):
    folder = _written(tmp_path / "p", change)
    done = offpath("sim", "--platform=lab", f"--program={folder}")
    assert done.returncode == 2 and said in done.stderr.replace("\n", ""), done.stderr


def test_a_cut_file_is_named(offpath, tmp_path):
    folder = _written(tmp_path / "p")
    path = folder / "rank-1.json"
    path.write_text(path.read_text()[:100])
    for command in (
        ("sim", "--platform=lab", f"--program={folder}"),
        ("advise", "--platform=lab", f"--profile={folder}"),
    ):
        done = offpath(*command)
        assert done.returncode == 2 and "rank-1.json: not JSON, or cut off" in done.stderr, done.stderr


def test_a_deadlock_says_who_waits(offpath, tmp_path):
    def both_receive(found):
        found["calls"][0]["call"] = "Recv"

    folder = _written(tmp_path / "p", both_receive)
    done = offpath("sim", "--platform=lab", f"--program={folder}")
    assert done.returncode != 0 and "deadlock" in done.stderr and "rank 1 waits for" in done.stderr


def test_what_the_product_leaves_to_the_host_takes_as_long_with_devices(offpath, tmp_path):
    """Blocking messages do, whatever their size."""
    folder, found, times = _written(tmp_path / "p"), tmp_path / "f.json", {}
    for engine in ("host", "offpath"):
        done = offpath(
            "sim", "--platform=lab", f"--program={folder}", f"--engine={engine}", f"--json={found}"
        )
        assert done.returncode == 0, done.stderr
        times[engine] = json.loads(found.read_text())["time_s"]
    assert times["host"] == times["offpath"]


def test_windows_are_replayed(offpath, tmp_path):
    """A get from a rank that computes ends in time if a device serves it, otherwise when that rank calls."""

    def get(found):
        found["windows"] = [{"comm": 0, "bytes": 100_000, "busy": 1}]
        window = {"site": 0, "window": 0}
        found["calls"] = [
            {"call": "Get", "peer": 1, "bytes": 100_000} | window,
            {"call": "Win_flush", "peer": 1} | window,
            {"call": "Accumulate", "peer": 1, "bytes": 8} | window,
            {"call": "Win_fence"} | window,
        ]
        gets = [[0, 1, 0, 0, 0], [1, 1, 0, 0, 0], [2, 1, 0, 0, 0]]
        found["sequence"] = [*(gets if found["rank"] == 0 else []), [3, 1, found["rank"], 0, 0]]

    folder, found, waited = _written(tmp_path / "p", get), tmp_path / "f.json", {}
    for engine in ("host", "offpath"):
        done = offpath(
            "sim", "--platform=thor-bf2", f"--program={folder}", f"--engine={engine}", f"--json={found}"
        )
        assert done.returncode == 0, done.stderr
        result = json.loads(found.read_text())
        assert result["unsupported"] == {}
        waited[engine] = next(inside for rank, call, _, inside in result["calls"] if (rank, call) == (0, 1))
    assert waited["host"] > 0.9 and waited["offpath"] < 0.01


def test_cancelled_receives_take_no_messages(offpath, tmp_path):
    def cancel(found):
        if found["rank"] == 0:
            return
        any_source = {"call": "Irecv", "site": 0, "comm": 0, "peer": -1, "tag": -1, "bytes": 100_000}
        found["calls"] += [any_source, {"call": "Cancel", "site": 0, "list": [1]}]
        found["calls"].append({"call": "Wait", "site": 0, "list": [1]})
        found["sequence"][:0] = [[1, 1, 0, 0, 0], [2, 1, 0, 0, 0], [3, 1, 0, 0, 0]]

    done = offpath("sim", "--platform=lab", f"--program={_written(tmp_path / 'p', cancel)}")
    assert done.returncode == 0, done.stderr


def test_gains_within_the_noise_are_no_change():
    verified = advise.measured_gain([1.0, 1.1, 0.9], [0.96, 0.95, 2.0], "run_s")
    assert verified["gain_percent"] == pytest.approx(4) and verified["noise_percent"] == pytest.approx(11)
    found = advise.Advice("p", 2, 2, 1.0, 1.0, 0.95, True, verified=verified)
    assert found.as_json()["verdict"] == "no change" == found.as_json()["verified"]["verdict"]
    assert advise.measured_line(found).endswith("to MPI_Finalize, medians of 3): no change")
    found.verified = advise.measured_gain([1.0], [0.5], "run_s")
    assert advise.measured_line(found) == (
        "measured with offload: 50 % less time (1.000 s to 500.00 ms, from MPI_Init to MPI_Finalize, one run"
        " of each): that does not tell whether there is a difference; use more --runs"
    )
    found.verified = {}
    assert found.as_json()["verdict"] == "faster" and found.as_json()["verified"] == {}
    found.offpath_s = 1.2
    assert found.as_json()["verdict"] == "slower"


def test_the_headline_names_a_gain_only_if_its_sign_is_sure(tmp_path):
    found = advise.Advice("lab", 2, 2, 2.0, 1.0, 0.83, True)
    low, high = found.gain_range
    assert low < 0 < high
    assert advise.headline(found) == (
        "offload: the model cannot tell whether it gains or loses: with the model's error, between 33 % more"
        " time and 67 % less time"
    )
    page = tmp_path / "page.html"
    advise_page.write(found, page)
    assert "<h1>Offload: the model cannot tell whether it gains" in page.read_text()
    found.measured_s = 1.0
    assert advise.headline(found).startswith("offload: faster, 17 % less time; with the model's error, ")
    found.offpath_s = 1.2
    assert advise.headline(found).startswith("offload: slower, 20 % more time; ")
    found.offpath_s = 0.99
    assert advise.headline(found).startswith("offload: no change; ")
    found.here = False
    assert "error there is not known" in advise.headline(found)


def test_tests_that_are_the_programs_work_are_no_gain_of_devices():
    found = advise.Advice("p", 2, 2, 20.0, 6.0, 5.0, True, polled_s=13.0)
    assert found.tested_s == 13 and found.gain_percent == pytest.approx(100 / 19)
    assert found.error_s == pytest.approx(1) and found.predicted_s == pytest.approx(20 * 18 / 19)
    # Where the replay lasts as long as the run, the program only waited with its tests.
    found.host_s = 20.0
    assert found.tested_s == 0 and found.gain_percent == pytest.approx(75)
    # Elsewhere nobody knows how long they take.
    found.host_s, found.here = 6.0, False
    assert found.tested_s == 0 and found.gain_percent == pytest.approx(100 / 6)


def test_a_program_is_profiled_and_timed_in_a_lab(offpath, tmp_path):
    program, found = _program("openmpi"), tmp_path / "f.json"
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is not there")
    done = offpath(
        "lab", "advise", "--no-namespaces", "--nodes=1", "--ranks-per-node=2", "--runs=2", f"--json={found}",
        f"--profile={tmp_path / 'kept'}", "--", str(program), **ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(found.read_text())
    verified = said["verified"]
    assert verified["runs"] == 2 and verified["host_run_s"] > 0 < verified["offpath_run_s"]
    assert len(said["profiled_s"]) == 2 and said["measured_s"] == min(said["profiled_s"])
    assert profiles.read(tmp_path / "kept").measured_s == said["measured_s"]


def test_of_several_profiles_the_one_with_the_median_time_is_replayed():
    def profile(seconds):
        return profiles.Profile(Path(f"{seconds}"), [{"begin_s": 1.0, "end_s": 1.0 + seconds}])

    for times, middle in (([3.0, 1.0, 2.0], 2.0), ([5.0], 5.0), ([4.0, 3.0, 1.0, 2.0], 2.0)):
        assert advise_lab.middle_profile([profile(one) for one in times]).measured_s == middle


def test_messages_for_matched_probes_are_replayed(offpath, tmp_path):
    """Each one's header goes by the libraries, for the probe; on the device, its payload does not."""

    def take_by_probe(found):
        call = found["calls"][0]
        call["bytes"] = 1_000_000
        if found["rank"] == 0:
            call.update(call="Isend", windows={"count": 4, "compute_s": 0.01, "waited_s": 0.01})
            found["calls"].append({"call": "Wait", "site": 0, "list": [1]})
            found["sequence"] = [{"times": 4, "body": [[0, 4, 0.01, 0.01, 0], [1, 4, 0.01, 0.01, 0]]}]
        else:
            found["calls"] = [call | {"call": "Mprobe", "bytes": 0}, call | {"call": "Mrecv"}]
            found["sequence"] = [{"times": 4, "body": [[0, 4, 0.01, 0.01, 0], [1, 4, 0, 0.01, 0]]}]

    folder = _written(tmp_path / "p", take_by_probe)
    messages = {}
    for engine in ("host", "offpath"):
        result = tmp_path / f"{engine}.json"
        done = offpath(
            "sim", "--platform=lab", f"--program={folder}", f"--engine={engine}", f"--json={result}"
        )
        assert done.returncode == 0 and "calls of MPI_M" not in done.stderr, done.stderr
        found = json.loads(result.read_text())
        assert [(rank, call, count) for rank, call, count, _ in found["calls"]] == [
            (0, 0, 4), (0, 1, 4), (1, 0, 4), (1, 1, 4),
        ]  # fmt: skip
        messages[engine] = found["messages"]
    assert messages["host"] != messages["offpath"]


def test_messages_of_older_profiles_for_matched_probes_do_not_block_the_replay(offpath, tmp_path):
    """They do not say which message an MPI_Mrecv took, so neither it nor the message is replayed."""

    def take_by_probe(found):
        if found["rank"] == 1:
            found["calls"][0] = {"call": "Mrecv", "site": 0}

    folder = _written(tmp_path / "p", take_by_probe)
    for engine in ("host", "offpath"):
        done = offpath("sim", "--platform=lab", f"--program={folder}", f"--engine={engine}")
        assert done.returncode == 0 and "4 calls of MPI_Mrecv" in done.stderr, done.stderr


def test_no_profile_is_an_error(offpath, tmp_path):
    done = offpath("advise", f"--profile={tmp_path}")
    assert done.returncode == 2 and "rank-0.json is missing" in done.stderr


def test_ranks_go_on_nodes_that_they_fill():
    assert advise.place(4, 4) == (4, 1, None)
    assert advise.place(6, 4)[:2] == (3, 2)
    used, each, note = advise.place(4, 16)
    assert (used, each) == (4, 1) and "16 nodes" in note


def _site(call, **figures):
    return profiles.Site(call, "p.c:1 main", **figures)


def test_what_a_site_is_told():
    assert "balance" in advise.say(_site("Barrier", inside_s=1, waited_for_last_s=0.9), 2, None)
    hidden = _site("Ialltoall", inside_s=0.1, windows=1, window_s=1, waited_s=0.5)
    assert "can use" in advise.say(hidden, 2, 0.4)
    bare = _site("Ialltoall", inside_s=0.1, windows=1, window_s=0, waited_s=0.5)
    assert "move work" in advise.say(bare, 2, 0.4)
    assert "MPI_Iallreduce" in advise.say(_site("Allreduce", inside_s=1, bytes=8), 2, None)
    assert advise.say(_site("Allreduce", inside_s=0.001, bytes=8), 2, None) == ""
