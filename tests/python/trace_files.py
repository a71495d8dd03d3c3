"""Files of traces, made as src/trace/layout.h describes them."""

import struct

from offpath import tracing

KINDS = [
    "call", "handed_over", "wait", "operation", "send", "receive", "copy", "reduce", "kernel", "sleep",
    "proxy", "decision", "stayed", "clock",
]  # fmt: skip
NOBODY = 0xFFFFFFFF
BEGIN, END, INSTANT = range(3)


def record(time, kind, phase, what=0, *, id_=0, size=0, other=0):
    return (time, id_, size, other, what, KINDS.index(kind) * 4 + phase)


def call(begin, end, what, *, size=0, peer=NOBODY):
    return [
        record(begin, "call", BEGIN, what),
        record(end, "call", END, what, size=size, other=peer),
    ]


def span(begin, end, kind, *, id_=0, size=0, other=0, what=0):
    return [
        record(begin, kind, BEGIN, what, id_=id_, size=size, other=other),
        record(end, kind, END, id_=id_),
    ]


def number(names, name):
    return len(KINDS) + names.index(name)


def write(folder, rank, node, names, chunks, *, dropped=0, process=7, boot="boot", clock=(0, 0)):
    """`rank` -1: a device. `names` follow those of the kinds. `boot` names the clock of a machine, and
    `clock` is one moment on it and in real time. A chunk: its thread, the thread's name, and records in the
    order of time."""
    room = 64 + 32 * max(len(records) for _, _, records in chunks)
    packed = b"".join(name.encode() + b"\0" for name in [*KINDS, *names])
    header = struct.pack(
        "<8sIIQQQQQQIIii40s64s64s", b"OFPTRAC1", 16384, room, len(chunks), len(chunks), dropped, *clock,
        process, len(KINDS), len(packed), rank, 2, boot.encode(), node.encode(), b"program",
    )  # fmt: skip
    data = bytearray(header.ljust(256, b"\0") + packed).ljust(16384, b"\0")
    for thread, name, records in chunks:
        part = struct.pack("<QQ48s", thread, len(records), name.encode())
        part += b"".join(struct.pack("<QQQIHH", *each) for each in records)
        data += part.ljust(room, b"\0")
    (folder / f"{node}-{rank}-{process}{tracing.SUFFIX}").write_bytes(data)
