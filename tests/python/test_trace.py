"""Traces: of real runs, read back as they were written and with Perfetto's own schema."""

import json
import re
import shutil
import subprocess
from collections import defaultdict

import pytest

import trace_files
import trace_processor
from conftest import eventually, traces
from offpath import tracing
from offpath.artifacts import find_artifacts
from offpath.errors import OffpathError
from offpath.tracing import files, otf2, perfetto, record, slices

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
    arrows = _check_perfetto(trace, (folder / perfetto.FILE).read_bytes())
    for actor in trace.ranks:
        assert all(arrows[one.id] == 2 for one in actor.slices("operations at the device"))
    if ranks > 1:
        _check_otf2(trace, folder / otf2.ARCHIVE / "traces.otf2")


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


def _check_perfetto(trace, data):
    schema = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    read = schema.Trace()
    read.ParseFromString(data)
    parents, names, stacks = {}, {}, defaultdict(list)
    begun, flows, last = defaultdict(int), defaultdict(int), defaultdict(int)
    for packet in read.packet:
        assert packet.trusted_packet_sequence_id == 1 and not packet.FindInitializationErrors()
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            names[track.uuid] = track.name or track.process.process_name
            parents[track.uuid] = track.parent_uuid
            continue
        event, stack = packet.track_event, stacks[packet.track_event.track_uuid]
        assert packet.timestamp >= last[event.track_uuid] and parents[event.track_uuid] in names
        last[event.track_uuid] = packet.timestamp
        if event.type == schema.TrackEvent.TYPE_SLICE_BEGIN:
            stack.append(event.name)
            begun[names[parents[event.track_uuid]], names[event.track_uuid], event.name] += 1
            for flow in event.flow_ids:
                flows[flow] += 1
        else:
            assert event.type == schema.TrackEvent.TYPE_SLICE_END and stack
            stack.pop()
    assert not any(stacks.values())
    wanted = defaultdict(int)
    for actor in trace.actors:
        for (thread, lane), rows in actor.lanes.items():
            track = f"{lane} ({thread})" if thread and actor.kind == "rank" else lane
            for one in (one for row in rows for one in row):
                wanted[f"{actor.name} ({actor.node})", track, one.name] += 1
    assert begun == wanted
    return flows


def _check_otf2(trace, anchor):
    if otf2.find_library() is None or shutil.which("otf2-print") is None:
        pytest.skip("OTF2 is not there")
    printed = subprocess.run(["otf2-print", anchor], capture_output=True, text=True, timeout=60)
    assert printed.returncode == 0 and not printed.stderr, printed.stderr
    entered, left = defaultdict(int), defaultdict(int)
    times = []
    for line in printed.stdout.splitlines():
        if event := re.match(r'(ENTER|LEAVE) +\d+ +(\d+) +.*Region: "([^"]+)"', line):
            (entered if event[1] == "ENTER" else left)[event[3]] += 1
            times.append(int(event[2]))
    wanted = defaultdict(int)
    for actor in trace.actors:
        for rows in actor.lanes.values():
            for one in (one for row in rows for one in row):
                wanted[one.name] += 1
    assert entered == left == wanted and times == sorted(times)
    groups = subprocess.run(["otf2-print", "-G", anchor], capture_output=True, text=True, timeout=60).stdout
    assert all(f'"{actor.name}"' in groups for actor in trace.actors)


def test_what_has_no_room_is_dropped_and_told(offpath, tmp_path, fft3d):
    done = _run(offpath, tmp_path, 2, fft3d, "--n", "16", "--iterations", "300", OFFPATH_TRACE_BYTES="128K")
    assert done.returncode == 0, done.stderr
    assert "events were dropped" in done.stderr
    trace = slices.read(tmp_path)
    assert all(actor.dropped > 0 for actor in trace.ranks)
    # What was being done when the room ended stays open.
    assert all(one.end >= one.begin for actor in trace.actors for one in actor.slices("calls"))
    assert b"events dropped" in (tmp_path / perfetto.FILE).read_bytes()


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
    for actor in slices.read(folder).ranks:
        assert len(actor.slices("calls")) > 1000


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
    _check_trace_processor(trace, tmp_path / "t", tmp_path / "browser")


def test_damaged_files_are_named(tmp_path):
    with pytest.raises(OffpathError, match="holds no trace"):
        slices.read(tmp_path)
    for name, data in (("a", b"no trace"), ("b", b"OFPTRAC1" + b"\xff" * 400)):
        path = tmp_path / f"{name}{tracing.SUFFIX}"
        path.write_bytes(data)
        with pytest.raises(OffpathError, match=path.name):
            files.read(path)


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
    perfetto.write(trace, tmp_path / perfetto.FILE)
    _check_perfetto(trace, (tmp_path / perfetto.FILE).read_bytes())
    if (anchor := otf2.write(trace, tmp_path)) is not None:
        _check_otf2(trace, anchor)


def test_machines_are_aligned_by_real_time(tmp_path):
    names = ["MPI_Wait"]
    wait = trace_files.number(names, "MPI_Wait")
    for rank, begin, clock in ((0, 100, (0, 1000)), (1, 600, (500, 1200))):
        chunks = [(7, "main", trace_files.call(begin, begin + 5, wait))]
        trace_files.write(tmp_path, rank, f"n{rank}", names, chunks, boot=f"b{rank}", clock=clock)
    trace = slices.read(tmp_path)
    assert trace.machines == 2 and trace.duration == 205
    assert [rank.slices("calls")[0].begin for rank in trace.ranks] == [0, 200]


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
    perfetto.write(slices.read(tmp_path), tmp_path / perfetto.FILE)
    rows, arguments, flows, errors = trace_processor.query(
        (tmp_path / perfetto.FILE).read_bytes(),
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


def _check_trace_processor(trace, folder, profile):
    counted, errors = trace_processor.query(
        (folder / perfetto.FILE).read_bytes(),
        [
            "select p.name as process, t.name as track, s.name, count(*) as n, sum(dur) as ns from slice s"
            " join process_track t on s.track_id = t.id join process p using (upid) group by 1, 2, 3",
            "select name, value from stats where severity = 'error' and value > 0",
        ],
        profile,
    )
    wanted = defaultdict(lambda: [0, 0])
    for actor in trace.actors:
        for (thread, lane), rows in actor.lanes.items():
            track = f"{lane} ({thread})" if thread and actor.kind == "rank" else lane
            for one in (one for row in rows for one in row):
                entry = wanted[f"{actor.name} ({actor.node})", track, one.name]
                entry[0] += 1
                entry[1] += one.end - one.begin
    assert {tuple(row[:3]): list(row[3:]) for row in counted} == wanted and errors == []


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
