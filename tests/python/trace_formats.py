"""Compares converted traces with what was read from the processes' files."""

import re
import shutil
import subprocess
from collections import defaultdict

import pytest

import trace_processor
from offpath.tracing import otf2


def _by_track(trace):
    """How many slices there are and how long they are together, by process, track and name."""
    found = defaultdict(lambda: [0, 0])
    for actor in trace.actors:
        for (thread, lane), rows in actor.lanes.items():
            track = f"{lane} ({thread})" if thread and actor.kind == "rank" else lane
            for one in (one for row in rows for one in row):
                entry = found[f"{actor.name} ({actor.node})", track, one.name]
                entry[0] += 1
                entry[1] += one.end - one.begin
    return found


def check_perfetto(trace, data):
    """Reads the file with Perfetto's own schema. Returns how many slices have each flow."""
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
    assert begun == {slice_: count for slice_, (count, _) in _by_track(trace).items()}
    return flows


def check_otf2(trace, anchor):
    """Reads the archive with otf2-print."""
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


def check_trace_processor(trace, data, profile):
    """Reads the file with Perfetto's trace processor, whose browser keeps its files in `profile`."""
    counted, errors = trace_processor.query(
        data,
        [
            "select p.name as process, t.name as track, s.name, count(*) as n, sum(dur) as ns from slice s"
            " join process_track t on s.track_id = t.id join process p using (upid) group by 1, 2, 3",
            "select name, value from stats where severity = 'error' and value > 0",
        ],
        profile,
    )
    assert {tuple(row[:3]): list(row[3:]) for row in counted} == _by_track(trace) and errors == []
