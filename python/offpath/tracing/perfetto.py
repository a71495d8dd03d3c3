"""Writes a trace as Perfetto's own format, which ui.perfetto.dev and its trace processor open.

The file is a protobuf message `Trace` of TracePackets with track descriptors and track events
(perfetto.dev, "Synthetic track events"). Packets of one shape have one size, because their varints are padded
to a fixed width, which protobuf allows. So numpy writes all packets of a lane at once.
"""

from pathlib import Path

import numpy as np

from offpath.tracing.slices import Slice, Trace, in_order

# Fields of the messages. TracePacket: 8 timestamp, 10 trusted_packet_sequence_id, 11 track_event,
# 60 track_descriptor. TrackEvent: 9 type, 11 track_uuid, 23 name, 47 flow_ids, 4 debug_annotations.
_SEQUENCE = 1
_BEGIN, _END, _INSTANT = 1, 2, 3
_VARINT, _FIXED64, _BYTES = 0, 1, 2


def write(trace: Trace, path: Path) -> None:
    parts: list[bytes] = []
    track = 0
    for number, actor in enumerate(trace.actors, 1):
        track += 1
        parent = track
        process = _field(1, number) + _field(6, f"{actor.name} ({actor.node})")
        parts.append(_packet(_field(60, _field(1, parent) + _field(3, process))))
        if actor.dropped:
            event = _field(9, _INSTANT) + _field(11, parent)
            event += _field(23, f"{actor.dropped} events dropped: no room in the trace's file")
            parts.append(_packet(_field(8, 0) + _field(11, event)))
        for (thread, lane), rows in actor.lanes.items():
            for row in rows:
                track += 1
                name = f"{lane} ({thread})" if thread and actor.kind == "rank" else lane
                descriptor = _field(1, track) + _field(2, name) + _field(5, parent)
                parts.append(_packet(_field(60, descriptor)))
                parts.append(_events(row, track))
    path.write_bytes(b"".join(parts))


def _events(row: list[Slice], track: int) -> bytes:
    """Begins and ends of a lane's slices."""
    groups: dict[tuple, list[int]] = {}
    for i, one in enumerate(row):
        groups.setdefault(
            (one.name, one.peer, bool(one.id), one.bytes > 0, one.count > 1, one.open), []
        ).append(i)
    begins: list[bytes] = [b""] * len(row)
    for (name, peer, flow, has_bytes, counted, open_), members in groups.items():
        some = [row[i] for i in members]
        fixed = _field(9, _BEGIN) + _field(11, track) + _field(23, name)
        if peer:
            fixed += _field(4, _field(10, "peer") + _field(6, peer))
        if open_:
            fixed += _field(4, _field(10, "state") + _field(6, "had not ended"))
        columns = [np.frombuffer(fixed, np.uint8)]
        for wanted, label, values in (
            (has_bytes, "bytes", [one.bytes for one in some]),
            (counted, "calls", [one.count for one in some]),
        ):
            if wanted:
                head = _field(10, label) + _tag(3, _VARINT)
                columns += [np.frombuffer(_tag(4, _BYTES) + _varint(len(head) + 9) + head, np.uint8)]
                columns += [_padded(values)]
        if flow:
            ids = np.array([one.id for one in some], dtype="<u8").view(np.uint8).reshape(-1, 8)
            columns += [np.frombuffer(_tag(47, _FIXED64), np.uint8), ids]
        for i, packet in zip(members, _packets([one.begin for one in some], columns), strict=True):
            begins[i] = packet
    end = np.frombuffer(_field(9, _END) + _field(11, track), np.uint8)
    ends = _packets([one.end for one in row], [end])
    return b"".join((begins if begin else ends)[i] for begin, i in in_order(row))


def _packets(times: list[int], columns: list[np.ndarray]) -> list[bytes]:
    """Packets with a track event each, made of columns: bytes that are the same in all, or one row each."""
    n = len(times)
    event = sum(column.shape[-1] for column in columns)
    head = _field(10, _SEQUENCE) + _tag(8, _VARINT)
    event_head = _tag(11, _BYTES) + _varint(event)
    size = len(head) + 9 + len(event_head) + event
    parts = [
        np.frombuffer(_tag(1, _BYTES) + _varint(size) + head, np.uint8), _padded(times),
        np.frombuffer(event_head, np.uint8), *columns,
    ]  # fmt: skip
    whole = np.concatenate([np.broadcast_to(part, (n, part.shape[-1])) for part in parts], axis=1)
    data, width = np.ascontiguousarray(whole).tobytes(), whole.shape[1]
    return [data[i * width : (i + 1) * width] for i in range(n)]


def _padded(values: list[int]) -> np.ndarray:
    """Varints of nine bytes each, for values below 2^63."""
    numbers = np.array(values, dtype=np.uint64)[:, None]
    digits = (numbers >> (np.arange(9, dtype=np.uint64) * np.uint64(7))) & np.uint64(0x7F)
    digits[:, :8] |= np.uint64(0x80)
    return digits.astype(np.uint8)


def _packet(fields: bytes) -> bytes:
    return _field(1, _field(10, _SEQUENCE) + fields)


def _field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return _tag(number, _VARINT) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _tag(number, _BYTES) + _varint(len(data)) + data


def _tag(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _varint(value: int) -> bytes:
    digits = bytearray()
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*digits, value])
