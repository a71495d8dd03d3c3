"""Traces: of real runs, read back as they were written and with Perfetto's own schema."""

import json
import shutil
import subprocess

import pytest

import trace_files
import trace_processor
from conftest import eventually, traces
from offpath import tracing
from offpath.artifacts import find_artifacts
from offpath.errors import OffpathError
from offpath.tracing import files, otf2, perfetto, record, slices
from trace_formats import check_otf2, check_perfetto, check_trace_processor

ROOT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}


@pytest.fixture
def fft3d(build):
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is not there")
    return str(build.program("fft3d"))


def _run(offpath, folder, ranks, *program, **extra):
    return offpath("run", f"--trace={folder}", "--", "mpirun", "-n", str(ranks), *program, **ROOT, **extra)


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_run_is_traced(offpath, tmp_path, fft3d, ranks):
    folder = tmp_path / "made" / "here"
    done = _run(offpath, folder, ranks, fft3d, "--n", "72", "--iterations", "2")
    assert done.returncode == 0, done.stderr
    assert f"{ranks} rank{'s' if ranks > 1 else ''} and {1 if ranks > 1 else 0} device" in done.stderr
    trace = slices.read(folder)
    assert trace.dropped == 0 and trace.machines == 1
    assert [actor.rank for actor in trace.ranks] == list(range(ranks))
    for actor in trace.ranks:
        calls = actor.slices("calls")
        assert calls[0].name.startswith("MPI_Init") and calls[-1].name == "MPI_Finalize"
        assert not any(one.open for one in calls)
        exchanges = [one for one in calls if one.name == "MPI_Ialltoallv"]
        assert bool(exchanges) == (ranks > 1) and all(one.bytes > 0 for one in exchanges)
        inside = sum(one.end - one.begin for one in calls if one.depth == 0)
        computed = sum(one.end - one.begin for one in actor.slices("computation"))
        assert inside + computed == calls[-1].end - calls[0].begin
    if ranks > 1:
        _check_device(trace)
    arrows = check_perfetto(trace, (folder / tracing.PERFETTO).read_bytes())
    for actor in trace.ranks:
        assert all(arrows[one.id] == 2 for one in actor.slices("operations at the device"))
    if ranks > 1:
        check_otf2(trace, folder / tracing.OTF2 / "traces.otf2")


def _check_device(trace):
    """Each operation of a rank is one of its device, and lies within it."""
    (device,) = trace.devices
    of_device = {one.id: one for one in device.slices("operations")}
    for actor in trace.ranks:
        handed_over = actor.slices("operations at the device")
        assert handed_over
        for one in handed_over:
            other = of_device.pop(one.id)
            assert other.name == one.name == "alltoallv" and other.peer == actor.name
            assert not one.open and other.end <= one.end and other.begin < one.end
    assert not of_device
    assert sum(one.bytes for one in device.slices("copying")) > 0 and device.slices("asleep")


def test_what_has_no_room_is_dropped_and_told(offpath, tmp_path, fft3d):
    done = _run(offpath, tmp_path, 2, fft3d, "--n", "16", "--iterations", "300", OFFPATH_TRACE_BYTES="128K")
    assert done.returncode == 0, done.stderr
    assert "events were dropped" in done.stderr
    trace = slices.read(tmp_path)
    assert len(trace.ranks) == 2 and all(actor.dropped > 0 for actor in trace.ranks)
    # What was being done when the room ended stays open.
    assert all(one.end >= one.begin for actor in trace.actors for one in actor.slices("calls"))
    assert b"events dropped" in (tmp_path / tracing.PERFETTO).read_bytes()


def test_a_killed_rank_has_left_its_trace(offpath, tmp_path, fft3d):
    folder, script = tmp_path / "t", tmp_path / "killed.sh"
    # A rank is killed once its file has grown by a second part.
    script.write_text(
        f"#!/bin/sh\n{fft3d} --n 16 --iterations 1000000 &\nfor i in $(seq 1000); do sleep 0.05\n"
        f'[ -z "$(find {folder} -name "*-$!*{tracing.SUFFIX}" -size +200k)" ] || break\ndone\n'
        "kill -9 $!\nwait $!\n"
    )
    script.chmod(0o755)
    done = _run(offpath, folder, 2, str(script))
    assert done.returncode != 0
    ranks = slices.read(folder).ranks
    assert len(ranks) == 2 and all(len(rank.slices("calls")) > 1000 for rank in ranks)


def test_a_lab_is_traced(offpath, tmp_path, fft3d, namespaces):
    done = offpath(
        "lab", "run", "--nodes=2", "--link=1gbit", f"--trace={tmp_path / 't'}", "--", fft3d, "--n=64",
        "--iterations=1",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    trace = slices.read(tmp_path / "t")
    assert len(trace.ranks) == len(trace.devices) == 2
    for device in trace.devices:
        for lane in ("sending", "receiving"):
            moved = device.slices(lane)
            assert moved and all(one.peer in ("node0", "node1") and one.peer != device.node for one in moved)
    assert sum(one.bytes for d in trace.devices for one in d.slices("sending")) == sum(
        one.bytes for d in trace.devices for one in d.slices("receiving")
    )
    without = offpath(
        "lab", "run", "--offload=off", "--nodes=2", f"--trace={tmp_path / 'h'}", "--", fft3d, "--n=32",
        "--iterations=1",
    )  # fmt: skip
    assert without.returncode == 0, without.stderr
    host = slices.read(tmp_path / "h")
    assert len(host.ranks) == 2 and not host.devices and host.ranks[0].slices("calls")
    page = tmp_path / "page.html"
    done = offpath("report", str(tmp_path / "t"), "--before", str(tmp_path / "h"), "-o", str(page))
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "t" / record.SUMMARY).read_text())["collectives"]["offloaded"] > 0
    assert all(f"device of {device.node}" in page.read_text() for device in trace.devices)
    check_trace_processor(trace, (tmp_path / "t" / tracing.PERFETTO).read_bytes(), tmp_path / "browser")


def test_damaged_files_are_named(tmp_path):
    with pytest.raises(OffpathError, match="holds no trace"):
        slices.read(tmp_path)
    for name, data in (("a", b"no trace"), ("b", b"OFPTRAC1" + b"\xff" * 400)):
        path = tmp_path / f"{name}{tracing.SUFFIX}"
        path.write_bytes(data)
        with pytest.raises(OffpathError, match=path.name):
            files.read(path)


def _write_a_call(folder):
    names = ["MPI_Wait"]
    trace_files.write(
        folder, 0, "n", names, [(7, "main", trace_files.call(20, 60, trace_files.number(names, "MPI_Wait")))]
    )


def test_a_file_that_was_only_begun_is_left_out(tmp_path):
    for name, data in (("empty", b""), ("zeros", bytes(16384))):
        (tmp_path / f"{name}{tracing.SUFFIX}").write_bytes(data)
    with pytest.raises(OffpathError, match="holds no trace"):
        slices.read(tmp_path)
    _write_a_call(tmp_path)
    assert [rank.name for rank in slices.read(tmp_path).ranks] == ["rank 0"]


def test_the_command_converts_again(offpath, tmp_path):
    done = offpath("trace", str(tmp_path))
    assert done.returncode == 2 and "holds no trace" in done.stderr
    _write_a_call(tmp_path)
    done = offpath("trace", str(tmp_path))
    assert done.returncode == 0 and "2 events of 1 rank and 0 devices" in done.stderr, done.stderr
    check_perfetto(slices.read(tmp_path), (tmp_path / tracing.PERFETTO).read_bytes())


def test_a_trace_that_cannot_be_converted_leaves_the_exit_code_alone(offpath, tmp_path, capsys):
    _write_a_call(tmp_path)
    (tmp_path / tracing.PERFETTO).mkdir()
    done = offpath("trace", str(tmp_path))
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "cannot be written: Is a directory" in done.stderr
    record.finish(tmp_path)
    assert "cannot be written: Is a directory" in capsys.readouterr().err


def test_a_new_trace_replaces_what_an_earlier_one_was_converted_to(tmp_path):
    _write_a_call(tmp_path)
    (tmp_path / tracing.PERFETTO).write_bytes(b"old")
    (tmp_path / tracing.OTF2).mkdir()
    (tmp_path / "notes").write_text("kept")
    record.prepare(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]


def test_threads_of_one_name_have_lanes_of_their_own(tmp_path):
    names = ["MPI_Wait", "alltoall"]
    wait, alltoall = (trace_files.number(names, name) for name in names)
    begun = [
        trace_files.record(time, "handed_over", trace_files.BEGIN, alltoall, id_=id_)
        for time, id_ in ((20, 1), (25, 2))
    ]
    ended = trace_files.record(61, "handed_over", trace_files.END, id_=1)
    # Thread 8 ends what thread 9 began, and is read before it.
    chunks = [
        (8, "worker", [*trace_files.call(40, 60, wait), ended]),
        (9, "worker", [*begun, *trace_files.call(30, 50, wait)]),
    ]
    trace_files.write(tmp_path, 0, "n", names, chunks)
    trace = slices.read(tmp_path)
    lanes = trace.ranks[0].lanes
    assert [len(lanes[name, "calls"]) for name in ("worker", "worker 2")] == [1, 1]
    one, open_ = trace.ranks[0].slices("operations at the device")
    assert (one.begin, one.end, one.name, one.open) == (0, 41, "alltoall", False)
    assert open_.open and open_.end == trace.duration
    perfetto.write(trace, tmp_path / tracing.PERFETTO)
    check_perfetto(trace, (tmp_path / tracing.PERFETTO).read_bytes())
    if (anchor := otf2.write(trace, tmp_path)) is not None:
        check_otf2(trace, anchor)


def test_machines_are_aligned_by_real_time(tmp_path):
    names = ["MPI_Wait"]
    wait = trace_files.number(names, "MPI_Wait")
    for rank, begin, clock in ((0, 100, (0, 1000)), (1, 600, (500, 1200))):
        chunks = [(7, "main", trace_files.call(begin, begin + 5, wait))]
        trace_files.write(tmp_path, rank, f"n{rank}", names, chunks, boot=f"b{rank}", clock=clock)
    trace = slices.read(tmp_path)
    assert trace.machines == 2 and trace.duration == 205
    assert [rank.slices("calls")[0].begin for rank in trace.ranks] == [0, 200]


def test_machines_are_aligned_by_what_their_ranks_measured(tmp_path):
    """Rank 1's clock is 1000 s behind and loses 1 ns in 10: the difference grows from its begin to its end.
    Its device shares its clock. The real-time clocks are wrong, and nobody looks at them."""
    names = ["MPI_Wait"]
    wait = trace_files.number(names, "MPI_Wait")
    behind = 1000 * 10**9
    measured = [
        trace_files.record(10_000, "clock", trace_files.INSTANT, id_=behind, size=7),
        trace_files.record(110_000, "clock", trace_files.INSTANT, id_=behind + 10_000, size=3),
    ]
    calls = [trace_files.call(at, at + 10, wait) for at in (10_000, 60_000, 110_000)]
    of_rank_0 = [(7, "main", trace_files.call(behind + 10_000, behind + 130_000, wait))]
    trace_files.write(tmp_path, 0, "n0", names, of_rank_0, boot="b0", clock=(0, 5))
    trace_files.write(
        tmp_path, 1, "n1", names, [(7, "main", measured + sum(calls, []))], boot="b1", clock=(0, 9)
    )
    device = [(9, "proxy-0", trace_files.span(60_000, 110_000, "sleep"))]
    trace_files.write(tmp_path, -1, "n1", names, device, boot="b1", clock=(0, 9))
    trace = slices.read(tmp_path)
    assert trace.machines == 2 and trace.clock_error_ns == 7
    begins = [one.begin for one in trace.ranks[1].slices("calls")]
    assert begins == [0, 55_000, 110_000]
    (asleep,) = trace.devices[0].slices("asleep")
    assert (asleep.begin, asleep.end) == (55_000, 110_000)


def test_a_killed_run_has_one_measurement(tmp_path):
    names = ["MPI_Wait"]
    wait = trace_files.number(names, "MPI_Wait")
    ahead = (1 << 64) - 400  # -400
    measured = [trace_files.record(500, "clock", trace_files.INSTANT, id_=ahead, size=1)]
    trace_files.write(tmp_path, 0, "n0", names, [(7, "main", trace_files.call(100, 190, wait))], boot="b0")
    records = measured + trace_files.call(520, 540, wait)
    trace_files.write(tmp_path, 1, "n1", names, [(7, "main", records)], boot="b1", clock=(0, 77))
    trace = slices.read(tmp_path)
    assert trace.ranks[1].slices("calls")[0].begin == 20 and trace.ranks[0].slices("calls")[0].begin == 0


def may_shift_clocks() -> str:
    """Why this process cannot make a time namespace. Empty: it can."""
    command = ["unshare", "--time", "--monotonic", "5", "true"]
    try:
        return subprocess.run(command, capture_output=True, text=True).stderr.strip()
    except OSError as error:
        return str(error)


def test_messages_take_time_between_machines_with_other_clocks(offpath, tmp_path, build):
    """Rank 1's monotonic clock is 5000 s ahead, as on a machine that was started earlier. No message may
    arrive before it was sent, within the error of the measurement."""
    if why := may_shift_clocks():
        pytest.skip(f"no time namespaces: {why}")
    if shutil.which("mpicc") is None:
        pytest.skip("mpicc is not there")
    program, script, folder = tmp_path / "turns", tmp_path / "turns.sh", tmp_path / "t"
    (tmp_path / "turns.c").write_text(TURNS)
    subprocess.run(["mpicc", "-o", program, tmp_path / "turns.c"], check=True)
    script.write_text(
        f'#!/bin/sh\n[ "$OMPI_COMM_WORLD_RANK" = 0 ] && exec {program}\n'
        f"exec unshare --time --monotonic 5000 --boottime 5000 {program}\n"
    )
    script.chmod(0o755)
    done = offpath("run", f"--trace={folder}", "--", "mpirun", "-n", "2", str(script), **ROOT)
    assert done.returncode == 0, done.stderr
    trace = slices.read(folder)
    assert trace.machines == 2 and trace.clock_error_ns is not None
    assert trace.duration < 60 * 10**9, "not the 5000 s by which the clocks differ"
    sends, receives = (
        [[one for one in rank.slices("calls") if one.name == name] for rank in trace.ranks]
        for name in ("MPI_Send", "MPI_Recv")
    )
    assert [len(calls) for calls in sends + receives] == [100] * 4
    for sender, receiver in ((0, 1), (1, 0)):
        for sent, received in zip(sends[sender], receives[receiver], strict=True):
            assert received.end >= sent.begin - trace.clock_error_ns


TURNS = """
#include <mpi.h>
int main(int argc, char** argv) {
    int rank, word = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 100; ++i) {
        if (rank == 0) MPI_Send(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(&word, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
    return MPI_Finalize();
}
"""


def test_the_trace_processor_reads_the_same(tmp_path):
    names = ["MPI_Wait", "alltoall"]
    wait, alltoall = (trace_files.number(names, name) for name in names)
    records = [
        *trace_files.span(20, 60, "handed_over", id_=3, size=8, what=alltoall),
        *trace_files.call(30, 50, wait, size=9, peer=1),
    ]
    trace_files.write(tmp_path, 0, "n", names, [(7, "main", sorted(records))])
    device = [
        *trace_files.span(25, 55, "operation", id_=3, what=alltoall),
        trace_files.record(70, "sleep", 0),
    ]
    trace_files.write(tmp_path, -1, "n", names, [(9, "proxy-0", device)], dropped=4)
    perfetto.write(slices.read(tmp_path), tmp_path / tracing.PERFETTO)
    rows, arguments, flows, errors = trace_processor.query(
        (tmp_path / tracing.PERFETTO).read_bytes(),
        [
            "select p.name as process, t.name as track, s.name, ts, dur from slice s"
            " join process_track t on s.track_id = t.id join process p using (upid) order by ts, s.id",
            "select s.name, key, display_value from slice s join args using (arg_set_id)"
            " where key glob 'debug.*' order by s.id, key",
            "select a.name, b.name as other from flow join slice a on a.id = slice_out"
            " join slice b on b.id = slice_in",
            "select name, value from stats where severity = 'error' and value > 0",
        ],
        tmp_path / "browser",
    )
    (dropped,) = [row for row in rows if row[2].startswith("4 events dropped")]
    assert dropped[:2] == ("device of n (n)", None)
    assert [row for row in rows if row != dropped] == [
        ("rank 0 (n)", "operations at the device", "alltoall", 0, 40),
        ("device of n (n)", "operations", "alltoall", 5, 30),
        ("rank 0 (n)", "calls", "MPI_Wait", 10, 20),
        ("rank 0 (n)", "computation", "computation", 30, 20),
        ("device of n (n)", "asleep", "sleep", 50, 0),
    ]
    assert ("MPI_Wait", "debug.bytes", "9") in arguments and ("MPI_Wait", "debug.peer", "rank 1") in arguments
    assert flows == [("alltoall", "alltoall")] and errors == []
    assert eventually(lambda: traces(str(tmp_path / "browser")) == [])


def test_calls_that_stayed_on_the_host_are_told_with_the_reason(offpath, tmp_path, build):
    try:
        program = find_artifacts().program("profiled_program")
    except OffpathError as error:
        pytest.skip(str(error))
    done = _run(offpath, tmp_path, 2, str(program))
    assert done.returncode == 0, done.stderr
    trace = slices.read(tmp_path)
    assert trace.counted.get("below the switch-over", 0) >= 10
    polls = [one for one in trace.ranks[0].slices("calls") if one.name == "MPI_Test"]
    assert sum(one.count for one in polls) >= 10
